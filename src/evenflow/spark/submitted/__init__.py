"""What travels with an application that is submitted from a jar."""
