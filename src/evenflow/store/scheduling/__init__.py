"""What schedulers read and write in the transactions of their turns."""
