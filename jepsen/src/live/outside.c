/*
 * What is done to a member from outside, because it takes system calls that Rust has no safe words for.
 *
 *   outside cut FLAG DIRECTORY... [-- PROCESS...]
 *       stops the processes and ends the file systems at DIRECTORY... as a power cut does
 *   outside without-fsync PROGRAM ...
 *       runs PROGRAM with fsync and its like doing nothing and saying "done"
 *   outside slow-fsync FILE PROGRAM ...
 *       runs PROGRAM with each fsync and its like delayed by the milliseconds that FILE holds at that moment
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
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
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* From fs/ext4/ext4.h: _IOR('X', 125, __u32). */
#define SHUT_DOWN _IOR('X', 125, uint32_t)

static int cut(uint32_t flag, int words, char **dirs) {
    int files[16], count = 0;
    while (count < words && strcmp(dirs[count], "--") != 0)
        count++;
    if (count > 16) {
        fprintf(stderr, "at most 16 at once\n");
        return 1;
    }
    /* All are opened first, so that nothing but the calls themselves lies between the first and the last. */
    for (int i = 0; i < count; i++) {
        files[i] = open(dirs[i], O_RDONLY | O_DIRECTORY);
        if (files[i] < 0) {
            fprintf(stderr, "%s: %s\n", dirs[i], strerror(errno));
            return 1;
        }
    }
    /*
     * From here on the processes execute nothing, as it is where the power is gone. Without that they would see an
     * fsync that was under way return 0 although nothing was written: ext4 says so while it shuts down.
     */
    for (int i = count + 1; i < words; i++) {
        if (kill((pid_t)strtol(dirs[i], NULL, 10), SIGSTOP) != 0) {
            fprintf(stderr, "process %s can't be stopped: %s\n", dirs[i], strerror(errno));
            return 1;
        }
    }
    for (int i = 0; i < count; i++) {
        if (ioctl(files[i], SHUT_DOWN, &flag) != 0) {
            fprintf(stderr, "%s can't be shut down: %s\n", dirs[i], strerror(errno));
            return 1;
        }
    }
    return 0;
}

#define NOTHING(call) \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (call), 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 0)

static int without_fsync(char **words) {
    /* An error number of 0: the call isn't made, and its caller is told that it went well. */
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        NOTHING(__NR_fsync),
        NOTHING(__NR_fdatasync),
        NOTHING(__NR_sync),
        NOTHING(__NR_syncfs),
        NOTHING(__NR_msync),
#ifdef __NR_sync_file_range
        NOTHING(__NR_sync_file_range),
#endif
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0
        || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
        fprintf(stderr, "fsync can't be taken away: %s\n", strerror(errno));
        return 1;
    }
    execv(words[0], words);
    fprintf(stderr, "%s: %s\n", words[0], strerror(errno));
    return 1;
}

#define ASKS(call) \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (call), 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF)

/* The supervisor's end of the filter, and the file with the delay: milliseconds, then "p" for disks that serve several
 * calls at once. */
static int asked;
static const char *delay_file;
static pthread_mutex_t disk = PTHREAD_MUTEX_INITIALIZER;

static void *delay(void *id) {
    char text[32] = "";
    int file = open(delay_file, O_RDONLY | O_CLOEXEC);
    if (file >= 0) {
        ssize_t length = read(file, text, sizeof text - 1);
        close(file);
        (void)length;
    }
    char *end = NULL;
    long ms = strtol(text, &end, 10);
    struct timespec pause = {ms / 1000, ms % 1000 * 1000000};
    int alone = ms > 0 && *end != 'p';
    if (alone)
        pthread_mutex_lock(&disk);
    while (ms > 0 && nanosleep(&pause, &pause) != 0 && errno == EINTR)
        ;
    if (alone)
        pthread_mutex_unlock(&disk);
    struct seccomp_notif_resp answer = {
        .id = *(uint64_t *)id,
        .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE,
    };
    free(id);
    /* It fails when the process is dead meanwhile. */
    ioctl(asked, SECCOMP_IOCTL_NOTIF_SEND, &answer);
    return NULL;
}

/* Answers until the last filtered process has ended: the file descriptor then says ENOENT and hangs up. */
static int supervise(void) {
    pthread_attr_t detached;
    pthread_attr_init(&detached);
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    for (;;) {
        struct pollfd ready = {.fd = asked, .events = POLLIN};
        if (poll(&ready, 1, -1) < 0 && errno != EINTR)
            return 1;
        if (ready.revents & POLLHUP)
            return 0;
        if (!(ready.revents & POLLIN))
            continue;
        struct seccomp_notif call = {0};
        if (ioctl(asked, SECCOMP_IOCTL_NOTIF_RECV, &call) != 0)
            continue;
        uint64_t *id = malloc(sizeof *id);
        pthread_t thread;
        if (id == NULL)
            return 1;
        *id = call.id;
        if (pthread_create(&thread, &detached, delay, id) != 0)
            delay(id);
    }
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

/*
 * The program keeps the process id that its parent knows, so that a kill hits it and not its supervisor, which is the
 * child and ends with it.
 */
static int slow_fsync(const char *file, char **words) {
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
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    int sockets[2];
    delay_file = file;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0)
        goto failed;
    pid_t child = fork();
    if (child < 0)
        goto failed;
    if (child == 0) {
        close(sockets[0]);
        /* Ctrl-C is for the processes in front. */
        setsid();
        asked = pass(sockets[1], -1);
        _exit(asked < 0 ? 1 : supervise());
    }
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
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
    fprintf(stderr, "fsync can't be made slow: %s\n", strerror(errno));
    return 1;
}

int main(int count, char **words) {
    if (count >= 4 && strcmp(words[1], "cut") == 0)
        return cut((uint32_t)strtoul(words[2], NULL, 10), count - 3, words + 3);
    if (count >= 3 && strcmp(words[1], "without-fsync") == 0)
        return without_fsync(words + 2);
    if (count >= 4 && strcmp(words[1], "slow-fsync") == 0)
        return slow_fsync(words[2], words + 3);
    fprintf(stderr, "usage: outside cut FLAG DIRECTORY... | without-fsync PROGRAM ... | slow-fsync FILE PROGRAM ...\n");
    return 2;
}
