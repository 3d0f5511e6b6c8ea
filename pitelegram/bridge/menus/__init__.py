"""The menus of a worker's Thread as data: views in, screens out."""
