"""The result of each part of the course: a network trained by what the reader wrote.

answer.py          the reader's function, from a notebook
trial.py           is it right? the course's check, and calls as in training
glyph_resnet.py    Part I: a ResNet that reads letters, by the reader's update rule
python_gpt.py      Part II: a GPT that writes Python-like text, by the reader's all-reduce
history.py         the history of a training run: how it is stored, and those that the course comes with
pictures.py        loss and accuracy next to those of the course; letters; a text
parts.py           both results as the command `result` needs them

The course's own runs are in `course/results/recorded/`: `python3 -m course result 1 --by NOTEBOOK --record` makes one.
"""
