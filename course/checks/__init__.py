"""What an answer must do, a module a chapter: `from course.checks import messages_and_collectives as check`."""
