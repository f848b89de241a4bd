/* Modes of the program that stand in files of their own. */
int supervise(const char *path, char **words);
