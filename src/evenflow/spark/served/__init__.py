"""What a session of a Spark Connect server takes, kept with its try. Evenflow's own server runs a program in Python, which has the
driver's figures and plans as a classic session has them; of another one the Spark UI is asked, where a connection says where it is.
"""
