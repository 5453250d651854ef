"""`python -m amptutorial`."""

from .reproduce import main

if __name__ == "__main__":
    main()
