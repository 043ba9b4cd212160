/* See the header. */
#include "runtime/nccl_api.h"

#include "base/error.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

#define DEFAULT_FILE "libnccl.so.2"
#define OLD_MINOR 8 /* versions to 2.8 are written with one digit less */

static LhNccl loaded;
static bool is_loaded;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

typedef struct {
    int major, minor, patch;
} Version;

static Version
split_version(int code)
{
    if (code < NCCL_VERSION(LH_NCCL_MAJOR_LEAST, OLD_MINOR + 1, 0))
        return (Version){ code / 1000, code / 100 % 10, code % 100 };
    return (Version){ code / 10000, code / 100 % 100, code % 100 };
}

char *
lh_nccl_version_text(int version)
{
    const Version v = split_version(version);

    return g_strdup_printf("%d.%d.%d", v.major, v.minor, v.patch);
}

static bool
find_functions(void *library, LhNccl *nccl, GError **error)
{
    const char *missing = NULL;
    void *function;

    /* POSIX promises that an object pointer of dlsym() holds a function's. */
#define FIND(name)                                                                                 \
    function = dlsym(library, "nccl" #name);                                                       \
    memcpy(&nccl->name, &function, sizeof(function));                                              \
    if (function == NULL && missing == NULL)                                                       \
        missing = "nccl" #name;
    LH_NCCL_FUNCTIONS(FIND)
#undef FIND
    if (missing == NULL)
        return true;
    g_set_error(error, LH_ERROR, LH_ERROR_RUNTIME,
                "NCCL: %s has no function %s; version %d.%d or newer is needed", nccl->file,
                missing, LH_NCCL_MAJOR_LEAST, LH_NCCL_MINOR_LEAST);
    return false;
}

/* The structs of another major version may be others. */
static bool
check_version(LhNccl *nccl, GError **error)
{
    const ncclResult_t result = nccl->GetVersion(&nccl->version);
    const Version v = split_version(nccl->version);
    g_autofree char *text = lh_nccl_version_text(nccl->version);

    if (result != ncclSuccess) {
        g_set_error(error, LH_ERROR, LH_ERROR_RUNTIME, "NCCL: %s does not tell its version: %s",
                    nccl->file, nccl->GetErrorString(result));
        return false;
    }
    if (v.major == NCCL_MAJOR && v.major == LH_NCCL_MAJOR_LEAST && v.minor >= LH_NCCL_MINOR_LEAST)
        return true;
    g_set_error(error, LH_ERROR, LH_ERROR_RUNTIME,
                "NCCL: %s is version %s; %d.%d or a newer version %d is needed", nccl->file, text,
                LH_NCCL_MAJOR_LEAST, LH_NCCL_MINOR_LEAST, NCCL_MAJOR);
    return false;
}

static bool
load(LhNccl *nccl, GError **error)
{
    const char *chosen = g_getenv(LH_NCCL_VARIABLE);
    void *library;

    nccl->file = g_strdup(chosen != NULL && chosen[0] != '\0' ? chosen : DEFAULT_FILE);
    library = dlopen(nccl->file, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        g_set_error(error, LH_ERROR, LH_ERROR_RUNTIME,
                    "NCCL: cannot load %s (%s); install NCCL, or name its file in %s", nccl->file,
                    dlerror(), LH_NCCL_VARIABLE);
        return false;
    }
    if (find_functions(library, nccl, error) && check_version(nccl, error))
        return true;
    dlclose(library);
    return false;
}

const LhNccl *
lh_nccl_load(GError **error)
{
    LhNccl nccl = { 0 };

    pthread_mutex_lock(&lock);
    if (!is_loaded) {
        is_loaded = load(&nccl, error);
        if (is_loaded)
            loaded = nccl;
        else
            g_free(nccl.file);
    }
    pthread_mutex_unlock(&lock);
    return is_loaded ? &loaded : NULL;
}

const LhNccl *
lh_nccl(void)
{
    return &loaded;
}
