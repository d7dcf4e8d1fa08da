-- How many workers a fleet is to have.
update fleet set replicas = %(replicas)s where name = %(fleet)s
