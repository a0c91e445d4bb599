"""The result of each part of the course: a network trained by what the reader wrote.

answer.py          the reader's function, from a notebook
glyph_resnet.py    Part I: a ResNet that reads letters, by the reader's update rule
python_gpt.py      Part II: a GPT that writes Python-like text, by the reader's all-reduce
history.py         the history of a training run: how it is stored, and those that the course comes with
pictures.py        the loss next to that of the course; the hardest letters
parts.py           both results as the command `result` needs them

The histories that the course comes with are in `course/results/recorded/`. The command makes them:
`python3 -m course result 1 --by NOTEBOOK --record`.
"""
