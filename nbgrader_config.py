"""nbgrader's settings: the teacher's side is solutions/, the students' exercises/, everything else .nbgrader/."""

import os

c = get_config()  # nbgrader puts it here

root = os.path.dirname(os.path.abspath(__file__)) if "__file__" in globals() else os.getcwd()
os.makedirs(os.path.join(root, ".nbgrader"), exist_ok=True)

c.CourseDirectory.root = root
c.CourseDirectory.course_id = "minidl"
c.CourseDirectory.source_directory = "solutions"
c.CourseDirectory.release_directory = "exercises"
c.CourseDirectory.submitted_directory = ".nbgrader/submitted"
c.CourseDirectory.autograded_directory = ".nbgrader/autograded"
c.CourseDirectory.feedback_directory = ".nbgrader/feedback"
c.CourseDirectory.solution_directory = ".nbgrader/solution"
c.CourseDirectory.db_url = "sqlite:///" + os.path.join(root, ".nbgrader", "gradebook.db")
c.CourseDirectory.ignore = [".ipynb_checkpoints", "*.pyc", "__pycache__", "*.py"]  # a text beside a solution would leak

c.ClearSolutions.code_stub = {"python": 'raise NotImplementedError("write the body of this function")'}
c.ClearSolutions.text_stub = "*Your answer here.*"

# Checks are made outside of the student's process, by the same code as `python3 -m course grade`.
c.Autograde.autograde_preprocessors = [
    "course.grading.nbgrader_check.CheckAnswers",
    "nbgrader.preprocessors.LimitOutput",
    "nbgrader.preprocessors.SaveAutoGrades",
    "nbgrader.preprocessors.AssignLatePenalties",
    "nbgrader.preprocessors.CheckCellMetadata",
]
# What students wrote is shown in a teacher's browser. nbgrader's pages pass it through this filter, which here takes
# out what could act there, as on the pages of `python3 -m course grade`.
c.HTMLExporter.filters = {"markdown2html": "course.grading.feedback.markdown.as_html"}
c.GenerateFeedback.preprocessors = [
    "nbgrader.preprocessors.GetGrades",
    "nbgrader.preprocessors.ClearHiddenTests",  # a student sees what the hidden tests found, not the tests
    "nbconvert.preprocessors.CSSHTMLHeaderPreprocessor",
]
