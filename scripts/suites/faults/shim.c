/*
 * Fails or records the system calls that change files of one directory. Preloaded into `galley` by
 * scripts/faults (LD_PRELOAD); nothing else uses it.
 *
 *   FAULTS_DIR      only files in this directory are affected (absolute, without symbolic links)
 *   FAULTS_CONTROL  a file of one page that the driver maps, too: struct control
 *   FAULTS_LOG      if set, every change and every sync is appended to this file: struct record
 *
 * Covered: creating open, write, writev, pwrite, ftruncate, fallocate, fsync, fdatasync, rename, unlink.
 * A renameat2 without the C library (rustix) is trapped with a seccomp filter. No other raw system call is
 * covered.
 * Not covered: writes through a mapping (mmap). SQLite writes only the -shm file that way, which it
 * rebuilds after a crash; `mapped` names any other file that is mapped for writing.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <ucontext.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
#define MAX_FDS 4096
#define NAME_BYTES 96
/* The sixth argument of a renameat2 that the filter lets pass; the call itself has five. */
#define OWN_CALL 0x6a11e7

enum fault { PASS, FAIL_EIO, FAIL_ENOSPC, KILL };

/* Shared with the driver, which has the same layout in control.py. */
struct control {
    _Atomic uint32_t armed;   /* count and fail calls only while it is 1 */
    uint32_t fault;           /* enum fault */
    uint32_t lasting;         /* fail all calls from `at` on, not only that one */
    uint32_t at;              /* the first call to fail, counted from 1; 0 only counts */
    _Atomic uint32_t count;   /* calls since the driver set it to 0 */
    _Atomic uint32_t fired;   /* failed calls */
    uint32_t without_search;  /* leave out the files of the search index */
    uint32_t reserved;
    _Atomic uint64_t log_bytes;
    char failed[128];         /* the first failed call and its file */
    char mapped[128];         /* a file other than -shm that is mapped for writing */
};

enum op { OPEN = 1, CREATE, WRITE, TRUNCATE, SYNC_BEGIN, SYNC_END, RENAME, UNLINK };

/* Followed by the name (for RENAME: both names, separated by a newline) and the written bytes. */
struct record {
    uint8_t op;
    uint8_t reserved;
    uint16_t name_bytes;
    uint32_t thread;
    uint64_t inode;
    uint64_t offset;
    uint32_t data_bytes;
    uint32_t reserved2;
};

static struct control *control;
static char directory[PATH_MAX];
static size_t directory_bytes;
static int log_fd = -1;
static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;
static struct file {
    char name[NAME_BYTES]; /* empty unless the descriptor belongs to the directory */
    uint64_t inode;
} files[MAX_FDS];

static void trap_renameat2(void);

__attribute__((constructor)) static void start(void)
{
    const char *dir = getenv("FAULTS_DIR"), *path = getenv("FAULTS_CONTROL"), *log = getenv("FAULTS_LOG");
    if (!dir || !path)
        return;
    snprintf(directory, sizeof directory, "%s", dir);
    directory_bytes = strlen(directory);
    int fd = syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC);
    void *page = fd < 0 ? MAP_FAILED : (void *)syscall(SYS_mmap, NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (page == MAP_FAILED) {
        fprintf(stderr, "faults: cannot map %s\n", path);
        _exit(99);
    }
    if (log)
        log_fd = syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_APPEND | O_CLOEXEC);
    control = page;
    trap_renameat2();
}

/* The name of a path inside the directory ("." for itself), or NULL. */
static const char *name_of(const char *path)
{
    if (!control || strncmp(path, directory, directory_bytes) != 0)
        return NULL;
    const char *rest = path + directory_bytes;
    return *rest == 0 ? "." : *rest == '/' ? rest + 1 : NULL;
}

static const char *fd_name(int fd)
{
    return control && fd >= 0 && fd < MAX_FDS && files[fd].name[0] ? files[fd].name : NULL;
}

static void append(enum op op, const char *name, uint64_t inode, uint64_t offset, const void *data, size_t bytes)
{
    if (log_fd < 0)
        return;
    struct record record = { .op = op, .name_bytes = strlen(name), .thread = syscall(SYS_gettid),
                             .inode = inode, .offset = offset, .data_bytes = bytes };
    struct iovec parts[] = { { &record, sizeof record }, { (void *)name, record.name_bytes }, { (void *)data, bytes } };
    pthread_mutex_lock(&log_lock);
    ssize_t written = syscall(SYS_writev, log_fd, parts, bytes ? 3 : 2);
    if (written != (ssize_t)(sizeof record + record.name_bytes + bytes))
        abort();
    atomic_fetch_add(&control->log_bytes, written);
    pthread_mutex_unlock(&log_lock);
}

/* Counts a call, and decides whether it fails. */
static enum fault decide(const char *op, const char *name)
{
    if (!name || !atomic_load(&control->armed) || (control->without_search && strstr(name, "-search")))
        return PASS;
    uint32_t number = atomic_fetch_add(&control->count, 1) + 1;
    if (control->at == 0 || number < control->at || (number > control->at && !control->lasting))
        return PASS;
    if (atomic_fetch_add(&control->fired, 1) == 0)
        snprintf(control->failed, sizeof control->failed, "%s %s", op, name);
    return control->fault;
}

/* Ends the process, or returns the failure to the caller. */
static int fail(enum fault fault)
{
    if (fault == KILL) {
        syscall(SYS_kill, getpid(), SIGKILL);
        for (;;)
            pause();
    }
    errno = fault == FAIL_EIO ? EIO : ENOSPC;
    return -1;
}

static int open_in_directory(int at, const char *path, int flags, mode_t mode)
{
    const char *name = name_of(path);
    int created = 0;
    if (name && (flags & O_CREAT) && syscall(SYS_faccessat, at, path, F_OK) != 0) {
        enum fault fault = decide("create", name);
        if (fault != PASS)
            return fail(fault);
        created = 1;
    }
    int fd = syscall(SYS_openat, at, path, flags, mode);
    if (fd >= 0 && fd < MAX_FDS) {
        files[fd].name[0] = 0;
        if (name) {
            struct stat about;
            files[fd].inode = fstat(fd, &about) == 0 ? about.st_ino : 0;
            snprintf(files[fd].name, NAME_BYTES, "%s", name);
            append(created ? CREATE : OPEN, name, files[fd].inode, 0, NULL, 0);
            if (!created && (flags & O_TRUNC))
                append(TRUNCATE, name, files[fd].inode, 0, NULL, 0);
        }
    }
    return fd;
}

static mode_t mode_of(int flags, va_list arguments)
{
    return flags & (O_CREAT | O_TMPFILE) ? va_arg(arguments, mode_t) : 0;
}

#define OPEN_FUNCTION(function)                                    \
    EXPORT int function(const char *path, int flags, ...)          \
    {                                                              \
        va_list arguments;                                         \
        va_start(arguments, flags);                                \
        mode_t mode = mode_of(flags, arguments);                   \
        va_end(arguments);                                         \
        return open_in_directory(AT_FDCWD, path, flags, mode);     \
    }
OPEN_FUNCTION(open)
OPEN_FUNCTION(open64)

#define OPENAT_FUNCTION(function)                                  \
    EXPORT int function(int at, const char *path, int flags, ...)  \
    {                                                              \
        va_list arguments;                                         \
        va_start(arguments, flags);                                \
        mode_t mode = mode_of(flags, arguments);                   \
        va_end(arguments);                                         \
        return open_in_directory(at, path, flags, mode);           \
    }
OPENAT_FUNCTION(openat)
OPENAT_FUNCTION(openat64)

EXPORT int close(int fd)
{
    if (fd >= 0 && fd < MAX_FDS)
        files[fd].name[0] = 0;
    return syscall(SYS_close, fd);
}

/* A write that fails with ENOSPC or is interrupted by a kill leaves its first half on the disk. */
static ssize_t write_at(const char *op, int fd, const void *data, size_t bytes, off_t offset)
{
    const char *name = fd_name(fd);
    enum fault fault = decide(op, name);
    if (fault == FAIL_EIO)
        return fail(fault);
    ssize_t written = syscall(SYS_pwrite64, fd, data, fault == PASS ? bytes : bytes / 2, offset);
    if (written > 0 && name)
        append(WRITE, name, files[fd].inode, offset, data, written);
    return fault == PASS ? written : fail(fault);
}

EXPORT ssize_t pwrite64(int fd, const void *data, size_t bytes, off_t offset)
{
    return write_at("pwrite", fd, data, bytes, offset);
}

EXPORT ssize_t pwrite(int fd, const void *data, size_t bytes, off_t offset)
{
    return write_at("pwrite", fd, data, bytes, offset);
}

EXPORT ssize_t write(int fd, const void *data, size_t bytes)
{
    if (!fd_name(fd))
        return syscall(SYS_write, fd, data, bytes);
    off_t offset = lseek(fd, 0, SEEK_CUR);
    ssize_t written = write_at("write", fd, data, bytes, offset);
    if (written > 0)
        lseek(fd, offset + written, SEEK_SET);
    return written;
}

EXPORT ssize_t writev(int fd, const struct iovec *parts, int count)
{
    if (!fd_name(fd))
        return syscall(SYS_writev, fd, parts, count);
    ssize_t total = 0;
    for (int part = 0; part < count; part++) {
        ssize_t written = write(fd, parts[part].iov_base, parts[part].iov_len);
        if (written < 0)
            return total ? total : -1;
        total += written;
    }
    return total;
}

EXPORT int ftruncate64(int fd, off_t size)
{
    const char *name = fd_name(fd);
    enum fault fault = decide("ftruncate", name);
    if (fault != PASS)
        return fail(fault);
    int result = syscall(SYS_ftruncate, fd, size);
    if (result == 0 && name)
        append(TRUNCATE, name, files[fd].inode, size, NULL, 0);
    return result;
}

EXPORT int ftruncate(int fd, off_t size)
{
    return ftruncate64(fd, size);
}

EXPORT int fallocate64(int fd, int mode, off_t offset, off_t size)
{
    enum fault fault = decide("fallocate", fd_name(fd));
    return fault != PASS ? fail(fault) : (int)syscall(SYS_fallocate, fd, mode, offset, size);
}

EXPORT int fallocate(int fd, int mode, off_t offset, off_t size)
{
    return fallocate64(fd, mode, offset, size);
}

EXPORT int posix_fallocate64(int fd, off_t offset, off_t size)
{
    return fallocate64(fd, 0, offset, size) == 0 ? 0 : errno;
}

EXPORT int posix_fallocate(int fd, off_t offset, off_t size)
{
    return posix_fallocate64(fd, offset, size);
}

static int sync_file(const char *op, long call, int fd)
{
    const char *name = fd_name(fd);
    enum fault fault = decide(op, name);
    if (fault != PASS)
        return fail(fault);
    if (name)
        append(SYNC_BEGIN, name, files[fd].inode, 0, NULL, 0);
    int result = syscall(call, fd);
    if (result == 0 && name)
        append(SYNC_END, name, files[fd].inode, 0, NULL, 0);
    return result;
}

EXPORT int fsync(int fd)
{
    return sync_file("fsync", SYS_fsync, fd);
}

EXPORT int fdatasync(int fd)
{
    return sync_file("fdatasync", SYS_fdatasync, fd);
}

EXPORT int renameat2(int from_at, const char *from, int to_at, const char *to, unsigned flags)
{
    const char *to_name = name_of(to), *from_name = name_of(from);
    enum fault fault = decide("rename", to_name);
    if (fault != PASS)
        return fail(fault);
    int result = syscall(SYS_renameat2, from_at, from, to_at, to, flags, OWN_CALL);
    if (result == 0 && to_name && from_name) {
        char names[2 * NAME_BYTES];
        snprintf(names, sizeof names, "%s\n%s", from_name, to_name);
        append(RENAME, names, 0, 0, NULL, 0);
    }
    return result;
}

EXPORT int renameat(int from_at, const char *from, int to_at, const char *to)
{
    return renameat2(from_at, from, to_at, to, 0);
}

EXPORT int rename(const char *from, const char *to)
{
    return renameat2(AT_FDCWD, from, AT_FDCWD, to, 0);
}

/* Handles a renameat2 that did not come through the functions above. */
static void on_trap(int signal, siginfo_t *info, void *context)
{
    (void)signal, (void)info;
    mcontext_t *machine = &((ucontext_t *)context)->uc_mcontext;
#if defined(__x86_64__)
    greg_t *r = machine->gregs;
    int result = renameat2(r[REG_RDI], (const char *)r[REG_RSI], r[REG_RDX], (const char *)r[REG_R10], r[REG_R8]);
    r[REG_RAX] = result < 0 ? -errno : result;
#elif defined(__aarch64__)
    unsigned long long *r = machine->regs;
    int result = renameat2(r[0], (const char *)r[1], r[2], (const char *)r[3], r[4]);
    r[0] = result < 0 ? -errno : result;
#else
#error "the registers of this processor are unknown"
#endif
}

static void trap_renameat2(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_renameat2, 0, 2),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[5])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, OWN_CALL, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
    };
    struct sock_fprog program = { sizeof filter / sizeof *filter, filter };
    struct sigaction action = { .sa_sigaction = on_trap, .sa_flags = SA_SIGINFO | SA_NODEFER };
    if (sigaction(SIGSYS, &action, NULL) || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) {
        fprintf(stderr, "faults: cannot trap renameat2\n");
        _exit(99);
    }
}

EXPORT int unlinkat(int at, const char *path, int flags)
{
    const char *name = name_of(path);
    enum fault fault = decide("unlink", name);
    if (fault != PASS)
        return fail(fault);
    int result = syscall(SYS_unlinkat, at, path, flags);
    if (result == 0 && name)
        append(UNLINK, name, 0, 0, NULL, 0);
    return result;
}

EXPORT int unlink(const char *path)
{
    return unlinkat(AT_FDCWD, path, 0);
}

EXPORT void *mmap64(void *address, size_t bytes, int protection, int flags, int fd, off_t offset)
{
    const char *name = fd_name(fd);
    if (name && (protection & PROT_WRITE) && (flags & MAP_SHARED) && !strstr(name, "-shm"))
        snprintf(control->mapped, sizeof control->mapped, "%s", name);
    return (void *)syscall(SYS_mmap, address, bytes, protection, flags, fd, offset);
}

EXPORT void *mmap(void *address, size_t bytes, int protection, int flags, int fd, off_t offset)
{
    return mmap64(address, bytes, protection, flags, fd, offset);
}
