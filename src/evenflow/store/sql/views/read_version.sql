-- One version of a DAG; without a number the newest, with a negative one as many before that.
select version_number, spec::text, file, code_hash
from dag_version
where dag_id = %(dag_id)s
  and version_number = case
        when %(number)s > 0 then %(number)s
        else (select v.version_number from dag d join dag_version v using (version_key) where d.dag_id = %(dag_id)s) + %(number)s
      end
