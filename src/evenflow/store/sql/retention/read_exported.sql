-- How far the history pipeline has exported: a moment, and the transactions below which number.
select at, past from exported
