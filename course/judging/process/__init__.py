"""The check's side of a student's process: started, asked, watched, and ended with everything it started."""
