/* See the header. */
#include "runtime/library.h"

#include <dlfcn.h>

char *
lh_library_path(const void *function)
{
    Dl_info info;

    if (dladdr(function, &info) == 0 || info.dli_fname == NULL)
        return g_strdup("a file that is not known");
    return g_strdup(info.dli_fname);
}
