"""`python -m amptutorial`."""

from .paper.reproduce import main

if __name__ == "__main__":
    main()
