/* The bcd binary's own program: CPython, linked in, that runs bcd from the zip at this file's end.
 *
 * Guarantees: nothing is unpacked. Modules are read from the running file through one open descriptor, so that a
 * process goes on loading its own code after an update has replaced the name it was started by; shared objects are
 * copied into sealed memory and loaded from there. No file is written, no directory is trusted, and Python's settings
 * are neither read from the environment nor left in it. Leaves to bundle_boot.py which shared object is wanted when.
 */
#define _GNU_SOURCE
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <unistd.h>

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8U
#endif

enum { CANNOT_START = 126, PAST_STANDARD_STREAMS = 10, PATH_BYTES = 1024 };

/* This file, open. */
static int self = -1;

static int open_self(void)
{
    int low = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    if (low < 0)
        return -1;
    /* The standard streams may be closed: no log line may land in here, nor Python take this for its input. */
    int high = fcntl(low, F_DUPFD_CLOEXEC, PAST_STANDARD_STREAMS);
    close(low);
    return high;
}

/* Whether the zip at the end is there to its end, so that a torn file fails with a sentence. */
static int is_whole(void)
{
    static const unsigned char end[] = {'P', 'K', 5, 6};
    enum { END_BYTES = 22 }; /* of a zip without a comment */
    unsigned char found[sizeof end];
    off_t size = lseek(self, 0, SEEK_END);
    return size >= END_BYTES && pread(self, found, sizeof found, size - END_BYTES) == (ssize_t)sizeof found
        && memcmp(found, end, sizeof end) == 0;
}

static int fill(int memory, off_t offset, size_t left)
{
    while (left > 0) {
        ssize_t moved = sendfile(memory, self, &offset, left);
        if (moved < 0 && errno == EINTR)
            continue;
        if (moved == 0)
            errno = EIO; /* the file ends before it should */
        if (moved <= 0)
            return -1;
        left -= (size_t)moved;
    }
    return fcntl(memory, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE);
}

/* hold(name, offset, size) -> (descriptor, path): a piece of this file in sealed memory. Raises OSError. */
static PyObject *hold(PyObject *module, PyObject *args)
{
    static int held = 0;
    const char *name;
    long long offset, size;
    (void)module;
    if (!PyArg_ParseTuple(args, "sLL", &name, &offset, &size))
        return NULL;
    /* It is mapped and never executed by name; kernels before 6.3 do not know the flag that says so. */
    int memory = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);
    if (memory < 0 && errno == EINVAL)
        memory = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (memory < 0)
        return PyErr_SetFromErrno(PyExc_OSError);
    if (fill(memory, (off_t)offset, (size_t)size) != 0) {
        PyErr_SetFromErrno(PyExc_OSError);
        close(memory);
        return NULL;
    }
    /* The loader takes a path that it has seen for the library that it had there, and a closed descriptor's number
     * comes back. So no two paths are spelled alike: each has one slash more. */
    char path[PATH_BYTES];
    char slashes[PATH_BYTES - 64];
    held += 1;
    if (held >= (int)sizeof slashes) {
        close(memory);
        PyErr_SetString(PyExc_OSError, "too many shared objects");
        return NULL;
    }
    memset(slashes, '/', (size_t)held);
    slashes[held] = '\0';
    snprintf(path, sizeof path, "/proc/self/fd%s%d", slashes, memory);
    return Py_BuildValue("(is)", memory, path);
}

/* link(path): load a shared library for those loaded after it, which find it by its soname. Raises OSError. */
static PyObject *link_library(PyObject *module, PyObject *args)
{
    const char *path;
    (void)module;
    if (!PyArg_ParseTuple(args, "s", &path))
        return NULL;
    if (dlopen(path, RTLD_NOW | RTLD_LOCAL) == NULL) {
        PyErr_SetString(PyExc_OSError, dlerror());
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"hold", hold, METH_VARARGS, NULL},
    {"link", link_library, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};
static PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_bundle", NULL, -1, methods, NULL, NULL, NULL, NULL};

static PyObject *init_bundle(void)
{
    return PyModule_Create(&definition);
}

static PyStatus start_python(int argc, char **argv, const wchar_t *archive)
{
    PyPreConfig before;
    PyPreConfig_InitPythonConfig(&before);
    before.isolated = 1;
    before.use_environment = 0; /* PYTHONPATH and its kin are somebody else's */
    before.coerce_c_locale = 0; /* that would set LC_CTYPE for every child and for the next binary */
    before.utf8_mode = -1;      /* as Python decides: on in the C and POSIX locales */
    before.parse_argv = 0;
    PyStatus status = Py_PreInitialize(&before);
    if (PyStatus_Exception(status))
        return status;
    PyConfig config;
    PyConfig_InitPythonConfig(&config);
    config.isolated = 1;
    config.use_environment = 0;
    config.parse_argv = 0;
    config.site_import = 0;
    config.write_bytecode = 0;
    config.pathconfig_warnings = 0;
    config.module_search_paths_set = 1;
    config.install_signal_handlers = 1;
    status = PyWideStringList_Append(&config.module_search_paths, archive);
    if (!PyStatus_Exception(status))
        status = PyConfig_SetBytesArgv(&config, argc, argv);
    if (!PyStatus_Exception(status))
        status = PyConfig_SetString(&config, &config.executable, L"");
    wchar_t **empty[] = {&config.prefix, &config.base_prefix, &config.exec_prefix, &config.base_exec_prefix};
    for (size_t i = 0; i < sizeof empty / sizeof *empty && !PyStatus_Exception(status); i++)
        status = PyConfig_SetString(&config, empty[i], L"/nonexistent");
    if (!PyStatus_Exception(status))
        status = Py_InitializeFromConfig(&config);
    PyConfig_Clear(&config);
    return status;
}

int main(int argc, char **argv)
{
    self = open_self();
    if (self < 0) {
        fprintf(stderr, "bcd: this program can't read itself (/proc/self/exe: %s); it needs /proc, and its file must be "
                        "readable for this user (mode 0755)\n", strerror(errno));
        return CANNOT_START;
    }
    if (!is_whole()) {
        fputs("bcd: this program's file is torn: install it anew\n", stderr);
        return CANNOT_START;
    }
    wchar_t archive[64];
    swprintf(archive, sizeof archive / sizeof *archive, L"/proc/self/fd/%d", self);
    PyImport_AppendInittab("_bundle", init_bundle);
    PyStatus status = start_python(argc, argv, archive);
    if (PyStatus_Exception(status)) {
        fprintf(stderr, "bcd: this program can't start (%s); its file is damaged, or memory is short: install it anew\n",
                status.err_msg ? status.err_msg : "no reason given");
        return CANNOT_START;
    }
    PyObject *boot = PyImport_ImportModule("bundle_boot");
    if (boot == NULL) {
        PyErr_Print(); /* SystemExit ends the process here, as it should */
        return 1;
    }
    return 0;
}
