/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/gpu/nccl_api.h"

#include "runtime/gpu/library.h"

#define MAJOR_LEAST 2
#define MINOR_LEAST 18
#define OLD_MINOR 8 /* versions up to 2.8 are encoded with one digit less */

static LhNccl nccl_loaded;
static LhLibraryState nccl_state = LH_LIBRARY_STATE;

static const LhLibraryFunction nccl_functions[] = {
#define NCCL_ROW(name) LH_LIBRARY_FUNCTION(nccl, LhNccl, name),
    LH_NCCL_FUNCTIONS(NCCL_ROW)
#undef NCCL_ROW
        { NULL, 0 },
};

static LhLibraryVersion
split_nccl_version(int code)
{
    if (code < NCCL_VERSION(MAJOR_LEAST, OLD_MINOR + 1, 0))
        return (LhLibraryVersion){ code / 1000, code / 100 % 10, code % 100 };
    return (LhLibraryVersion){ code / 10000, code / 100 % 100, code % 100 };
}

char *
lh_nccl_version_text(int version)
{
    return lh_library_version_text(split_nccl_version(version));
}

static bool
ask_nccl_version(void *loaded, LhLibraryVersion *version, const char **why)
{
    LhNccl *n = loaded;
    const ncclResult_t result = n->GetVersion(&n->version);

    *version = split_nccl_version(n->version);
    if (result != ncclSuccess)
        *why = n->GetErrorString(result);
    return result == ncclSuccess;
}

/* Older versions lack ncclCommSplit and non-blocking finalisation. */
static const LhLibrary nccl_lib = {
    .name = "NCCL",
    .file = "libnccl.so.2",
    .variable = LH_NCCL_VARIABLE,
    .functions = nccl_functions,
    .least = { MAJOR_LEAST, MINOR_LEAST, 0 },
    .major = NCCL_MAJOR,
    .version = ask_nccl_version,
};

const LhNccl *
lh_nccl_load(GError **error)
{
    return lh_library_load(&nccl_lib, &nccl_state, &nccl_loaded, error) ? &nccl_loaded : NULL;
}
