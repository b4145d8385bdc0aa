from importlib.metadata import version as _version

project = "opendp_concurrent"
copyright = "The opendp_concurrent developers"
author = "The opendp_concurrent developers"
release = _version("opendp-concurrent")
extensions = ["sphinx.ext.autodoc", "sphinx_design"]
html_theme = "pydata_sphinx_theme"
html_title = "opendp_concurrent"
html_show_sourcelink = False
exclude_patterns = ["_build"]
autodoc_typehints = "none"
autodoc_member_order = "bysource"
suppress_warnings = ["config.cache"]
