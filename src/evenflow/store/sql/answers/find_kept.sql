-- What a request of a person was answered.
select digest, status, location, answer from kept_answer where person = %(person)s and key = %(key)s
