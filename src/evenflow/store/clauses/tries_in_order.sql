-- Which of the tries "d" that wait for a worker in one queue is given out first: what resumes (class 0), then by the priorities
-- that lanes have (core/selection/order.py), then which was selected first. The index dispatch_waiting has them so.
d.class, d.priority desc, d.xact, d.epoch
