-- What is exported: an installation, in a state that was not set back since.
select id, set_back_ms from evenflow_reporting_v1.installation
