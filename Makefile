PYTHON ?= python3

.PHONY: demo test lab

demo test lab:
	$(PYTHON) -m course $@
