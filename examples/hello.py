"""The smallest pipeline with two tasks: what one returns, the other gets."""

from __future__ import annotations

from evenflow import dag, task


@task
def greet(name: str) -> str:
    return f"Hello, {name}!"


@task
def shout(greeting: str) -> str:
    print(greeting.upper())
    return greeting.upper()


@dag
def hello(name: str = "world") -> None:
    """Try: evenflow run examples/hello.py --param name=Ada"""
    shout(greet(name))


hello()
