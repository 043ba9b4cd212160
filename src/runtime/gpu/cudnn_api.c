/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/gpu/cudnn_api.h"

#include "base/error.h"
#include "runtime/gpu/library.h"

#define TEXT_BYTES 1000 /* longest error text of cuDNN */

static LhCudnn cudnn_loaded;
static LhLibraryState cudnn_state = LH_LIBRARY_STATE;

static const LhLibraryFunction cudnn_functions[] = {
#define CUDNN_ROW(name) LH_LIBRARY_FUNCTION(cudnn, LhCudnn, name),
    LH_CUDNN_FUNCTIONS(CUDNN_ROW)
#undef CUDNN_ROW
        { NULL, 0 },
};

static LhLibraryVersion
split_cudnn_version(size_t code)
{
    return (LhLibraryVersion){ (int)(code / 10000), (int)(code / 100 % 100), (int)(code % 100) };
}

char *
lh_cudnn_version_text(size_t version)
{
    return lh_library_version_text(split_cudnn_version(version));
}

static bool
ask_cudnn_version(void *loaded, LhLibraryVersion *version, const char **why)
{
    LhCudnn *c = loaded;

    (void)why;
    c->version = c->GetVersion();
    *version = split_cudnn_version(c->version);
    return true;
}

/*
 * Older versions need a padding mask where the number of keys is no multiple of 128, and before 9.6
 * the caller must zero the dq accumulator; NVIDIA's cudnn-frontend does both for them
 * (node/scaled_dot_product_flash_attention.h).
 */
static const LhLibrary cudnn_lib = {
    .name = "cuDNN",
    .file = "libcudnn.so.9",
    .variable = LH_CUDNN_VARIABLE,
    .functions = cudnn_functions,
    .least = { 9, 16, 0 },
    .major = CUDNN_MAJOR,
    .version = ask_cudnn_version,
};

const LhCudnn *
lh_cudnn_load(GError **error)
{
    return lh_library_load(&cudnn_lib, &cudnn_state, &cudnn_loaded, error) ? &cudnn_loaded : NULL;
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
