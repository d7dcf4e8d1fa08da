"""Kubernetes: a pod for each try, made from a template, that holds the token of this try and no other."""
