"""What a reader sees in JupyterLab: Chromium, driven by selenium, in front of the lab that `course lab` starts."""
