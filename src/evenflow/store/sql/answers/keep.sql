-- The answer to the request that has claimed its key in this transaction.
update kept_answer set status = %(status)s, location = %(location)s, answer = %(answer)s where person = %(person)s and key = %(key)s
