/* See the header. */
#include "runtime/library.h"

#include "base/error.h"

#include <dlfcn.h>

void *
lh_library_find(const char *file, const char *name, GError **error)
{
    void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    void *function = library == NULL ? NULL : dlsym(library, name);

    if (library == NULL)
        g_set_error(error, LH_ERROR, LH_ERROR_RUNTIME, "cannot load %s (%s)", file, dlerror());
    else if (function == NULL)
        g_set_error(error, LH_ERROR, LH_ERROR_RUNTIME, "%s has no function %s", file, name);
    return function;
}

char *
lh_library_path(const void *function)
{
    Dl_info info;

    if (dladdr(function, &info) == 0 || info.dli_fname == NULL)
        return g_strdup("a file that is not known");
    return g_strdup(info.dli_fname);
}
