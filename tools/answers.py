"""Find reference answers by NUTS and ship them: `answers.py [NAME ...]`, all of them without a name (half an hour)."""

import sys

from ewsg import problems
from ewsg.problems import answers

if __name__ == "__main__":
    for name in sys.argv[1:] or problems.names():
        problem = problems.load(name)
        if problem.exact is None:
            answer = problem.solve()
            answers.write(name, problem, answer)
            print(name, answer.source, flush=True)
