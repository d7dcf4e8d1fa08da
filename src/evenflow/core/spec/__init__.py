"""DAGs as everybody but their authors has them: which can be followed, how large they may be, and how two differ."""
