/*
 * Program below a supervisor, which answers for the kernel where a fault is active: fsync and its like, and the wall
 * clock. Programs may be static: no library is preloaded.
 *
 * The control file has lines of a name and a number, and is replaced as a whole (rename):
 *
 *   fsync-ms N         each fsync and its like takes N milliseconds longer
 *   fsync-parallel 1   the disk serves any number of them at once; without it, one at a time
 *   fsync-errno N      they fail with this error number
 *   fsync-errors N     so many of them fail; without it, all
 *   clock-shift-ms N   the wall clock is N milliseconds ahead
 *   clock-drift-ppm N  it runs fast by N parts per million, from the moment the file is read
 *
 * The file CONTROL.counts has three numbers of 64 bits: delayed calls, failed calls, altered reads of the clock.
 */
#define _GNU_SOURCE
#include "outside.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Linux 6.6; older headers lack them. */
#ifndef SECCOMP_IOCTL_NOTIF_SET_FLAGS
#define SECCOMP_IOCTL_NOTIF_SET_FLAGS SECCOMP_IOW(4, uint64_t)
#define SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP (1UL << 0)
#endif

#define NS_PER_S 1000000000LL

static struct {
    const char *path;
    ino_t inode;
    struct timespec modified;
    long fsync_ms, fsync_errno, fsync_errors, shift_ms, drift_ppm;
    int parallel;
    /* Monotonic time at which the drift began. */
    int64_t since_ns;
} control;

enum { DELAYED, FAILED, CLOCK, COUNTS };
static uint64_t *counts;
/* The supervisor's end of the filter. */
static int asked;
static pthread_mutex_t disk = PTHREAD_MUTEX_INITIALIZER;

static int64_t now_ns(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return now.tv_sec * NS_PER_S + now.tv_nsec;
}

/* Reads the control file if it is another one than before. */
static void read_control(void) {
    struct stat found;
    if (stat(control.path, &found) != 0
        || (found.st_ino == control.inode && found.st_mtim.tv_sec == control.modified.tv_sec
            && found.st_mtim.tv_nsec == control.modified.tv_nsec))
        return;
    FILE *file = fopen(control.path, "re");
    if (file == NULL)
        return;
    control.inode = found.st_ino;
    control.modified = found.st_mtim;
    control.fsync_ms = control.fsync_errno = control.shift_ms = control.drift_ppm = 0;
    control.fsync_errors = -1;
    control.parallel = 0;
    control.since_ns = now_ns(CLOCK_MONOTONIC);
    char name[32];
    long value;
    while (fscanf(file, "%31s %ld", name, &value) == 2) {
        if (strcmp(name, "fsync-ms") == 0)
            control.fsync_ms = value;
        else if (strcmp(name, "fsync-parallel") == 0)
            control.parallel = value != 0;
        else if (strcmp(name, "fsync-errno") == 0)
            control.fsync_errno = value;
        else if (strcmp(name, "fsync-errors") == 0)
            control.fsync_errors = value;
        else if (strcmp(name, "clock-shift-ms") == 0)
            control.shift_ms = value;
        else if (strcmp(name, "clock-drift-ppm") == 0)
            control.drift_ppm = value;
    }
    fclose(file);
}

static void count(int which) {
    __atomic_fetch_add(&counts[which], 1, __ATOMIC_RELAXED);
}

/* The kernel refuses the answer to a call that was interrupted, which is no error. */
static void answer(uint64_t id, int error, int64_t value, int goes_on) {
    struct seccomp_notif_resp response = {
        .id = id,
        .val = value,
        .error = -error,
        .flags = goes_on ? SECCOMP_USER_NOTIF_FLAG_CONTINUE : 0,
    };
    ioctl(asked, SECCOMP_IOCTL_NOTIF_SEND, &response);
}

/* A delayed call. */
struct delayed {
    uint64_t id;
    long ms;
    int alone;
};

static void *delay(void *argument) {
    struct delayed call = *(struct delayed *)argument;
    free(argument);
    struct timespec pause = {call.ms / 1000, call.ms % 1000 * 1000000};
    if (call.alone)
        pthread_mutex_lock(&disk);
    while (nanosleep(&pause, &pause) != 0 && errno == EINTR)
        ;
    if (call.alone)
        pthread_mutex_unlock(&disk);
    answer(call.id, 0, 0, 1);
    return NULL;
}

static void answer_fsync(uint64_t id) {
    if (control.fsync_errno != 0 && control.fsync_errors != 0) {
        if (control.fsync_errors > 0)
            control.fsync_errors--;
        count(FAILED);
        answer(id, (int)control.fsync_errno, 0, 0);
        return;
    }
    struct delayed *call = control.fsync_ms > 0 ? malloc(sizeof *call) : NULL;
    if (call == NULL) {
        answer(id, 0, 0, 1);
        return;
    }
    count(DELAYED);
    *call = (struct delayed){id, control.fsync_ms, !control.parallel};
    pthread_attr_t detached;
    pthread_attr_init(&detached);
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    pthread_t thread;
    if (pthread_create(&thread, &detached, delay, call) != 0)
        delay(call);
    pthread_attr_destroy(&detached);
}

/* Writes into the memory of the caller; false if that is not possible. */
static int give(const struct seccomp_notif *call, uint64_t to, const void *from, size_t size) {
    struct iovec local = {(void *)from, size}, remote = {(void *)to, size};
    /* The number of a dead process may belong to another one. */
    if (ioctl(asked, SECCOMP_IOCTL_NOTIF_ID_VALID, &call->id) != 0)
        return 0;
    return process_vm_writev((pid_t)call->pid, &local, 1, &remote, 1, 0) == (ssize_t)size;
}

static void answer_clock(const struct seccomp_notif *call) {
    if (control.shift_ms == 0 && control.drift_ppm == 0) {
        answer(call->id, 0, 0, 1);
        return;
    }
    int64_t since = now_ns(CLOCK_MONOTONIC) - control.since_ns;
    int64_t ns = now_ns(CLOCK_REALTIME) + control.shift_ms * 1000000LL + since / 1000000 * control.drift_ppm;
    int64_t s = ns / NS_PER_S, result = 0;
    int good = 1;
    count(CLOCK);
    if (call->data.nr == __NR_clock_gettime) {
        struct timespec time = {s, ns % NS_PER_S};
        good = give(call, call->data.args[1], &time, sizeof time);
#ifdef __NR_time
    } else if (call->data.nr == __NR_time) {
        time_t time = s;
        result = s;
        good = call->data.args[0] == 0 || give(call, call->data.args[0], &time, sizeof time);
#endif
#ifdef __NR_gettimeofday
    } else {
        struct timeval time = {s, ns % NS_PER_S / 1000};
        good = call->data.args[0] == 0 || give(call, call->data.args[0], &time, sizeof time);
#endif
    }
    answer(call->id, good ? 0 : EFAULT, result, 0);
}

static int is_clock(int number) {
    switch (number) {
    case __NR_clock_gettime:
#ifdef __NR_time
    case __NR_time:
#endif
#ifdef __NR_gettimeofday
    case __NR_gettimeofday:
#endif
        return 1;
    }
    return 0;
}

/* Answers until the last filtered process has ended: the file descriptor then hangs up. */
static int answer_all(void) {
    ioctl(asked, SECCOMP_IOCTL_NOTIF_SET_FLAGS, SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP);
    for (;;) {
        struct pollfd ready = {.fd = asked, .events = POLLIN};
        if (poll(&ready, 1, -1) < 0 && errno != EINTR)
            return 1;
        if (ready.revents & POLLHUP)
            return 0;
        struct seccomp_notif call = {0};
        if (!(ready.revents & POLLIN) || ioctl(asked, SECCOMP_IOCTL_NOTIF_RECV, &call) != 0)
            continue;
        read_control();
        if (is_clock(call.data.nr))
            answer_clock(&call);
        else
            answer_fsync(call.id);
    }
}

/*
 * Hides the vDSO from the program that `process` executes, or else it would read the clock without a system call: the
 * entry of the auxiliary vector is ignored then. Returns when the program is about to run.
 */
static int hide_vdso(pid_t process) {
    int status;
    for (;;) {
        if (waitpid(process, &status, __WALL) < 0 || !WIFSTOPPED(status))
            return 0;
        if (status >> 8 == (SIGTRAP | PTRACE_EVENT_EXEC << 8))
            break;
        ptrace(PTRACE_CONT, process, 0, status >> 16 == 0 ? WSTOPSIG(status) : 0);
    }
    struct user_regs_struct registers;
    struct iovec part = {&registers, sizeof registers};
    if (ptrace(PTRACE_GETREGSET, process, NT_PRSTATUS, &part) != 0)
        return 0;
#if defined(__x86_64__)
    uint64_t *at = (uint64_t *)registers.rsp;
#elif defined(__aarch64__)
    uint64_t *at = (uint64_t *)registers.sp;
#else
#error "the stack pointer of this processor"
#endif
    /* The count of arguments, the arguments, and the environment, each with a 0 at its end. */
    at++;
    for (int ends = 0; ends < 2; at++)
        ends += ptrace(PTRACE_PEEKDATA, process, at, 0) == 0;
    for (uint64_t type; (type = (uint64_t)ptrace(PTRACE_PEEKDATA, process, at, 0)) != AT_NULL; at += 2)
        if (type == AT_SYSINFO_EHDR && ptrace(PTRACE_POKEDATA, process, at, (uint64_t)AT_IGNORE) != 0)
            return 0;
    return ptrace(PTRACE_DETACH, process, 0, 0) == 0;
}

/* Hands a file descriptor over a socket, or takes it from there. */
static int pass(int socket, int file) {
    char byte = 0, space[CMSG_SPACE(sizeof(int))] = {0};
    struct iovec part = {&byte, 1};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof space};
    if (file < 0) {
        if (recvmsg(socket, &message, MSG_CMSG_CLOEXEC) != 1 || CMSG_FIRSTHDR(&message) == NULL)
            return -1;
        memcpy(&file, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof file);
        return file;
    }
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof file);
    memcpy(CMSG_DATA(header), &file, sizeof file);
    return sendmsg(socket, &message, 0) == 1 ? file : -1;
}

static int open_counts(const char *path) {
    char name[4096];
    if (snprintf(name, sizeof name, "%s.counts", path) >= (int)sizeof name)
        return 0;
    int file = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (file < 0 || ftruncate(file, COUNTS * sizeof *counts) != 0)
        return 0;
    counts = mmap(NULL, COUNTS * sizeof *counts, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    return counts != MAP_FAILED;
}

#define ASKS(call) \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (call), 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF)

/*
 * The program keeps the process id that its parent knows, so that a kill hits it and not its supervisor, which is the
 * child and ends with it.
 */
int supervise(const char *path, char **words) {
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        ASKS(__NR_fsync),
        ASKS(__NR_fdatasync),
        ASKS(__NR_sync),
        ASKS(__NR_syncfs),
        ASKS(__NR_msync),
#ifdef __NR_sync_file_range
        ASKS(__NR_sync_file_range),
#endif
#ifdef __NR_time
        ASKS(__NR_time),
#endif
#ifdef __NR_gettimeofday
        ASKS(__NR_gettimeofday),
#endif
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_clock_gettime, 0, 5),
        /* The low half of the first argument, on processors with the low half first. */
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
        ASKS(CLOCK_REALTIME),
        ASKS(CLOCK_REALTIME_COARSE),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    int sockets[2];
    char byte = 0;
    control.path = path;
    if (!open_counts(path) || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0)
        goto failed;
    pid_t parent = getpid(), child = fork();
    if (child < 0)
        goto failed;
    if (child == 0) {
        close(sockets[0]);
        /* Ctrl-C is for the processes in front. */
        setsid();
        if (ptrace(PTRACE_SEIZE, parent, 0, PTRACE_O_TRACEEXEC) != 0)
            fprintf(stderr, "the program can't be traced: %s\n", strerror(errno));
        else if (write(sockets[1], &byte, 1) == 1 && (asked = pass(sockets[1], -1)) >= 0 && hide_vdso(parent))
            _exit(answer_all());
        _exit(1);
    }
    close(sockets[1]);
    if (read(sockets[0], &byte, 1) != 1 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        goto failed;
    int listener =
        (int)syscall(__NR_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
    if (listener < 0 || pass(sockets[0], listener) < 0)
        goto failed;
    close(listener);
    execv(words[0], words);
    fprintf(stderr, "%s: %s\n", words[0], strerror(errno));
    return 1;
failed:
    fprintf(stderr, "the program can't be supervised: %s\n", strerror(errno));
    return 1;
}
