"""Files do not import each other in a circle, not even for types."""

from graphlib import TopologicalSorter

import grimp

OF_METHODS = {  # what a class's own methods return
    ("minidl.nn.module", "minidl.nn.stages"),
    ("minidl.tensor.gradients", "minidl.tensor"),
    ("minidl.tensor.methods", "minidl.tensor"),
}


def test_files_do_not_import_each_other_in_a_circle() -> None:
    graph = grimp.build_graph("minidl", "course", cache_dir=None)
    files: TopologicalSorter[str] = TopologicalSorter()
    for file in graph.modules:
        files.add(
            file, *(one for one in graph.find_modules_directly_imported_by(file) if (file, one) not in OF_METHODS)
        )
    files.prepare()  # raises CycleError, with the circle
