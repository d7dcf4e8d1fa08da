/* What a task may do to its worker, ended by itself after a minute.

   lines together|apart: forks and ends, and so does each that it has forked; apart, each in a session of its own.
   lines zombie|traced|vfork FILE: a thread counts in FILE, beside a first thread that has ended, is held by a tracer, or waits for
   a child that does not go on. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *counted;

static void *count(void *unused) {
    (void)unused;
    int file = open(counted, O_WRONLY | O_CREAT, 0644);
    char line[32];
    for (unsigned long n = 1;; n++) {
        pwrite(file, line, snprintf(line, sizeof line, "%020lu.", n), 0);
        usleep(1000);
    }
}

static void fork_on(int apart) {
    setsid();
    struct timespec now, begun;
    clock_gettime(CLOCK_BOOTTIME, &begun);
    do {
        pid_t child = fork();
        if (child > 0) _exit(0);
        if (child < 0) usleep(1000);
        if (apart) setsid();
        clock_gettime(CLOCK_BOOTTIME, &now);
    } while (now.tv_sec < begun.tv_sec + 60);
}

int main(int argc, char **argv) {
    if (argc == 2) {
        fork_on(!strcmp(argv[1], "apart"));
        return 0;
    }
    counted = argv[2];
    pid_t me = getpid();
    if (!strcmp(argv[1], "traced") && fork() == 0) {
        usleep(100000);
        ptrace(PTRACE_SEIZE, me, 0, 0);
        ptrace(PTRACE_INTERRUPT, me, 0, 0);
        waitpid(me, 0, __WALL);
        sleep(60);
        _exit(0);
    }
    pthread_t thread;
    pthread_create(&thread, 0, count, 0);
    alarm(60);
    if (!strcmp(argv[1], "zombie")) pthread_exit(0);
    if (!strcmp(argv[1], "vfork") && vfork() == 0) {
        sleep(60);
        _exit(0);
    }
    pthread_join(thread, 0);
}
