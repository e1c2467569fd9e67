"""Questions asked of scores: is one better, how small can an embedding get?"""
