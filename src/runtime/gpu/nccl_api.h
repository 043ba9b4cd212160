/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NCCL, loaded at run time, so that the program also starts without it and can report that. Its
 * functions have the types of nccl.h, and are called as nccl->Send(...).
 */
#pragma once

#include <glib.h>
#include <nccl.h>
#include <stdbool.h>

/* Environment variable with the file to load instead of libnccl.so.2. */
#define LH_NCCL_VARIABLE "LONGHAUL_NCCL"

#define LH_NCCL_FUNCTIONS(F)                                                                       \
    F(GetVersion)                                                                                  \
    F(GetErrorString)                                                                              \
    F(GetLastError)                                                                                \
    F(GetUniqueId)                                                                                 \
    F(CommInitRankConfig)                                                                          \
    F(CommSplit)                                                                                   \
    F(CommFinalize)                                                                                \
    F(CommDestroy)                                                                                 \
    F(CommAbort)                                                                                   \
    F(CommGetAsyncError)                                                                           \
    F(GroupStart)                                                                                  \
    F(GroupEnd)                                                                                    \
    F(Send)                                                                                        \
    F(Recv)                                                                                        \
    F(AllGather)                                                                                   \
    F(AllReduce)                                                                                   \
    F(ReduceScatter)                                                                               \
    F(Broadcast)

typedef struct {
#define LH_NCCL_MEMBER(name) __typeof__(&nccl##name) name;
    LH_NCCL_FUNCTIONS(LH_NCCL_MEMBER)
#undef LH_NCCL_MEMBER
    int version; /* as ncclGetVersion() returns it: 22809 is 2.28.9 */
} LhNccl;

/*
 * Loads the library, once per process. LH_ERROR_RUNTIME with its name if it is missing, lacks a
 * function, or has an unsupported version. May be called from any thread.
 */
const LhNccl *lh_nccl_load(GError **error);

/* "2.28.9"; caller frees. */
char *lh_nccl_version_text(int version);
