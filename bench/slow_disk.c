/* A disk that takes longer to be sure: each fdatasync, which is what PostgreSQL waits for in a commit, takes $BENCH_SYNC_US microseconds more.
   Preloaded. As on a real disk, what is written while one is under way has to wait for the next one. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int fdatasync(int file) {
    const char *given = getenv("BENCH_SYNC_US");
    long us = given == NULL ? 0 : atol(given);
    struct timespec left = {us / 1000000, us % 1000000 * 1000};
    while (nanosleep(&left, &left) != 0) {}
    return (int)syscall(SYS_fdatasync, file);
}
