/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/gpu/library.h"

#include "base/error.h"

#include <dlfcn.h>
#include <string.h>

char *
lh_library_path(const void *function)
{
    Dl_info info;

    if (dladdr(function, &info) == 0 || info.dli_fname == NULL)
        return g_strdup("an unknown file");
    return g_strdup(info.dli_fname);
}

char *
lh_library_version_text(LhLibraryVersion version)
{
    return g_strdup_printf("%d.%d.%d", version.major, version.minor, version.patch);
}

static bool
find_functions(const LhLibrary *library, void *handle, const char *file, void *functions,
               GError **error)
{
    for (const LhLibraryFunction *f = library->functions; f->name != NULL; f++) {
        void *function = dlsym(handle, f->name);

        if (function == NULL) {
            g_set_error(error, LH_ERROR, LH_ERROR_RUNTIME,
                        "%s: %s has no function %s; version %d.%d or newer is needed",
                        library->name, file, f->name, library->least.major, library->least.minor);
            return false;
        }
        /* POSIX guarantees that dlsym()'s object pointer can hold a function pointer. */
        memcpy((char *)functions + f->offset, &function, sizeof(function));
    }
    return true;
}

static bool
check_version(const LhLibrary *library, const char *file, void *functions, GError **error)
{
    LhLibraryVersion version = { 0 };
    g_autofree char *text = NULL;
    const char *why = NULL;

    if (!library->version(functions, &version, &why)) {
        g_set_error(error, LH_ERROR, LH_ERROR_RUNTIME, "%s: %s does not report its version: %s",
                    library->name, file, why);
        return false;
    }
    if (version.major == library->major && version.major == library->least.major &&
        version.minor >= library->least.minor)
        return true;
    text = lh_library_version_text(version);
    g_set_error(error, LH_ERROR, LH_ERROR_RUNTIME,
                "%s: %s is version %s; %d.%d or a newer version %d is needed", library->name, file,
                text, library->least.major, library->least.minor, library->major);
    return false;
}

static bool
load(const LhLibrary *library, void *functions, GError **error)
{
    const char *chosen = g_getenv(library->variable);
    const char *file = chosen != NULL && chosen[0] != '\0' ? chosen : library->file;
    void *handle = dlopen(file, RTLD_NOW | RTLD_LOCAL);

    if (handle == NULL) {
        g_set_error(error, LH_ERROR, LH_ERROR_RUNTIME,
                    "%s: cannot load %s (%s); install %s, or name its file in %s", library->name,
                    file, dlerror(), library->name, library->variable);
        return false;
    }
    if (find_functions(library, handle, file, functions, error) &&
        check_version(library, file, functions, error))
        return true;
    dlclose(handle);
    return false;
}

bool
lh_library_load(const LhLibrary *library, LhLibraryState *state, void *functions, GError **error)
{
    bool is_loaded;

    pthread_mutex_lock(&state->lock);
    state->is_loaded = state->is_loaded || load(library, functions, error);
    is_loaded = state->is_loaded;
    pthread_mutex_unlock(&state->lock);
    return is_loaded;
}
