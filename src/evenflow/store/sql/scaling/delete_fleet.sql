-- No autoscaler makes it larger or smaller from now on; its history goes with it.
delete from fleet where name = %(name)s returning name
