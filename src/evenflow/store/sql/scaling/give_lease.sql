-- An autoscaler that ends lets another one act at once.
delete from scaling_lease where holder = %(holder)s
