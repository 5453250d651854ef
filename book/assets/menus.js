/* The theme binds its menus to the first button of their kind on the page, which is one of a header that is hidden. This
   comes before the theme's own script. */
document.querySelectorAll("#pst-header .sidebar-toggle").forEach((button) => button.remove());
