-- Whether an autoscaler acts. FOR SHARE: until this transaction ends no other one can become the acting one.
select extract(epoch from until - now())::float8 as left_s from scaling_lease where holder = %(holder)s and until > now() for share
