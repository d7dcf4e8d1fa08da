"""The pages of ``docs/reference``, made from the code: ``python -m scripts.reference`` writes them, a test holds them current."""
