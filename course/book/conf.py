"""Settings of Sphinx for the book, and formulas as MathML, which browsers draw without scripts."""

from functools import partial

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util import inspect, logging
from sphinx.writers.html5 import HTML5Translator

from course.book import api
from course.formulas import as_mathml

project = "minidl"
author = "the minidl contributors"
extensions = ["myst_parser", "sphinx.ext.autodoc"]
add_module_names = False
autodoc_typehints = "none"
autodoc_inherit_docstrings = False
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
myst_enable_extensions = ["dollarmath", "amsmath", "colon_fence"]
myst_dmath_allow_space = False  # "$5 and $10" are prices
myst_heading_anchors = 6
myst_update_mathjax = False
nitpicky = True  # a link to a name that is on no page is a warning
toc_object_entries_show_parents = "hide"
smartquotes = False  # else the option --plan becomes a dash and a word
html_theme = "furo"  # loads no font and no script from elsewhere, and little in all
html_title = "minidl"
html_static_path = ["static"]
html_css_files = ["book.css"]
html_js_files = ["book.js"]
html_math_renderer = "mathml"
html_show_copyright = False
html_use_index = html_domain_indices = False  # nothing links to these lists
html_copy_source = False
html_show_search_summary = False  # a page that is opened as a file may not read others


def write(translator: HTML5Translator, node: nodes.Element, is_display: bool) -> None:
    """Write a formula; one that stands alone can be scrolled sideways. One that is not understood is a warning."""
    text = as_mathml(node.astext(), is_display)
    if not text.startswith("<math"):
        logging.getLogger(__name__).warning("no MathML for this formula: %s", node.astext(), location=node)
    translator.body.append(f'<div class="formula">{text}</div>' if is_display else text)
    raise nodes.SkipNode


def signature(
    _app: Sphinx, what: str, _name: str, value: type, _options: object, arguments: str, _returned: str
) -> tuple[str, str] | None:
    """What a class takes that has a `__new__` for any arguments, to explain wrong ones: what its `__init__` takes."""
    if what != "class" or arguments != "(*args, **options)":
        return None
    if value.__init__ is object.__init__:
        return "()", ""
    taken = inspect.signature(value.__init__, bound_method=True)
    return inspect.stringify_signature(taken, show_annotation=False, show_return_annotation=False), ""


def setup(app: Sphinx) -> dict[str, bool]:
    """Tell Sphinx how formulas and docstrings are written."""
    inline, block = partial(write, is_display=False), partial(write, is_display=True)
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    app.connect("autodoc-process-docstring", api.describe)
    app.connect("autodoc-process-signature", signature)
    app.connect("autodoc-skip-member", api.skip)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
