/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuDNN, loaded at run time, so that the program also starts without it and can report that. Its
 * functions have the types of cudnn_graph.h, and are called as cudnn->BackendFinalize(...).
 */
#pragma once

#include <cudnn_graph.h>
#include <glib.h>
#include <stdbool.h>

/* Environment variable with the file to load instead of libcudnn.so.9. */
#define LH_CUDNN_VARIABLE "LONGHAUL_CUDNN"

#define LH_CUDNN_FUNCTIONS(F)                                                                      \
    F(GetVersion)                                                                                  \
    F(GetErrorString)                                                                              \
    F(GetLastErrorString)                                                                          \
    F(Create)                                                                                      \
    F(SetStream)                                                                                   \
    F(BackendCreateDescriptor)                                                                     \
    F(BackendDestroyDescriptor)                                                                    \
    F(BackendSetAttribute)                                                                         \
    F(BackendGetAttribute)                                                                         \
    F(BackendFinalize)                                                                             \
    F(BackendExecute)

typedef struct {
#define LH_CUDNN_MEMBER(name) __typeof__(&cudnn##name) name;
    LH_CUDNN_FUNCTIONS(LH_CUDNN_MEMBER)
#undef LH_CUDNN_MEMBER
    size_t version; /* as cudnnGetVersion() returns it: 91900 is 9.19.0 */
} LhCudnn;

/*
 * Loads the library, once per process. LH_ERROR_RUNTIME with its name if it is missing, lacks a
 * function, or has an unsupported version. May be called from any thread.
 */
const LhCudnn *lh_cudnn_load(GError **error);

/* "9.19.0"; caller frees. */
char *lh_cudnn_version_text(size_t version);

/* Whether @status is success; else @error names the operation and cuDNN's reason. */
bool lh_cudnn_check(const LhCudnn *cudnn, cudnnStatus_t status, const char *what, GError **error);
