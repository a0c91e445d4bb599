"""What a reader does in a lecture: guess, move a slider, step through a picture, wait.

guess.py           asks for a prediction before the answer is computed
explore.py         a picture with sliders, or small multiples of it
step_through.py    a picture with buttons back and forward, or some of its frames
bar.py             a progress bar
warm_up.py         compiles minidl's kernels before the first measurement, with a bar
redrawn.py         a picture that widgets redraw
multiples.py       the same picture for several settings, in one figure
frontend.py        whether a person uses this kernel
without_kernel.py  what a built notebook stores for pages without a kernel, with the scripts panel.js and guess.js

A notebook that runs without a person (`python3 -m course build`, tests) waits for nothing. It shows static pictures
and stores the panels and guesses that a page made from it offers.

    from course.interaction import bar, explore, guess, step_through, warm_up
"""

from course.interaction.bar import bar
from course.interaction.explore import explore
from course.interaction.guess import guess
from course.interaction.step_through import step_through
from course.interaction.warm_up import warm_up

__all__ = ["bar", "explore", "guess", "step_through", "warm_up"]
