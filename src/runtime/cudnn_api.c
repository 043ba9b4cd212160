/* See the header. */
#include "runtime/cudnn_api.h"

#include "base/error.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

#define DEFAULT_FILE "libcudnn.so.9"
#define TEXT_BYTES 1000 /* of what cuDNN says of an error */

static LhCudnn loaded;
static bool is_loaded;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static bool
find_functions(void *library, LhCudnn *cudnn, GError **error)
{
    const char *missing = NULL;
    void *function;

    /* POSIX promises that an object pointer of dlsym() holds a function's. */
#define FIND(name)                                                                                 \
    function = dlsym(library, "cudnn" #name);                                                      \
    memcpy(&cudnn->name, &function, sizeof(function));                                             \
    if (function == NULL && missing == NULL)                                                       \
        missing = "cudnn" #name;
    LH_CUDNN_FUNCTIONS(FIND)
#undef FIND
    if (missing == NULL)
        return true;
    g_set_error(error, LH_ERROR, LH_ERROR_RUNTIME,
                "cuDNN: %s has no function %s; version %d.%d or newer is needed", cudnn->file,
                missing, LH_CUDNN_MAJOR_LEAST, LH_CUDNN_MINOR_LEAST);
    return false;
}

/* Enumerators of another major version may be others. */
static bool
check_version(LhCudnn *cudnn, GError **error)
{
    size_t major, minor;

    cudnn->version = cudnn->GetVersion();
    major = cudnn->version / 10000;
    minor = cudnn->version / 100 % 100;
    if (major == CUDNN_MAJOR && major == LH_CUDNN_MAJOR_LEAST && minor >= LH_CUDNN_MINOR_LEAST)
        return true;
    g_set_error(error, LH_ERROR, LH_ERROR_RUNTIME,
                "cuDNN: %s is version %zu.%zu.%zu; %d.%d or a newer version %d is needed",
                cudnn->file, major, minor, cudnn->version % 100, LH_CUDNN_MAJOR_LEAST,
                LH_CUDNN_MINOR_LEAST, CUDNN_MAJOR);
    return false;
}

static bool
load(LhCudnn *cudnn, GError **error)
{
    const char *chosen = g_getenv(LH_CUDNN_VARIABLE);
    void *library;

    cudnn->file = g_strdup(chosen != NULL && chosen[0] != '\0' ? chosen : DEFAULT_FILE);
    library = dlopen(cudnn->file, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        g_set_error(error, LH_ERROR, LH_ERROR_RUNTIME,
                    "cuDNN: cannot load %s (%s); install cuDNN, or name its file in %s",
                    cudnn->file, dlerror(), LH_CUDNN_VARIABLE);
        return false;
    }
    if (find_functions(library, cudnn, error) && check_version(cudnn, error))
        return true;
    dlclose(library);
    return false;
}

const LhCudnn *
lh_cudnn_load(GError **error)
{
    LhCudnn cudnn = { 0 };
    bool done;

    pthread_mutex_lock(&lock);
    if (!is_loaded) {
        is_loaded = load(&cudnn, error);
        if (is_loaded)
            loaded = cudnn;
        else
            g_free(cudnn.file);
    }
    done = is_loaded;
    pthread_mutex_unlock(&lock);
    return done ? &loaded : NULL;
}

bool
lh_cudnn_check(const LhCudnn *cudnn, cudnnStatus_t status, const char *what, GError **error)
{
    char more[TEXT_BYTES] = "";

    if (status == CUDNN_STATUS_SUCCESS)
        return true;
    cudnn->GetLastErrorString(more, sizeof(more));
    g_strstrip(more);
    g_set_error(error, LH_ERROR, LH_ERROR_RUNTIME, "cuDNN: %s: %s%s%s%s", what,
                cudnn->GetErrorString(status), more[0] != '\0' ? " (" : "", more,
                more[0] != '\0' ? ")" : "");
    return false;
}
