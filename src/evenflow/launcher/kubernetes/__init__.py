"""Kubernetes: a pod for each try, made from a template, with the token of only this try."""
