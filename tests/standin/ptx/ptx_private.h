/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the parts of the PTX interpreter: the decoded instruction, and the state of a running
 * block.
 *
 * A register is a vector of 32 lanes in its warp's register file: 16, 32 or 64 bits per lane, and
 * one bit per lane for predicates. Constants and special registers are registers too, filled before
 * the kernel starts, so every operand is an offset.
 */
#pragma once

#include "ptx.h"

#define PTX_LANES 32
#define PTX_ALL_LANES 0xffffffffu
#define PTX_WARPS_MAX 32
#define PTX_BARRIERS 16

/* Limits on the memory a text may request. */
#define PTX_REGISTERS_BYTES_MAX (8u << 20) /* per warp */
#define PTX_SHARED_BYTES_MAX (256u << 10)
#define PTX_LOCAL_BYTES_MAX (64u << 10) /* per thread */
#define PTX_INSTRUCTIONS_MAX (1u << 20)
#define PTX_VARIABLE_BYTES_MAX (64u << 20)

/* Windows of generic addresses for spaces that are not plain host memory. */
#define PTX_WINDOW_SHIFT 56
enum { PTX_WINDOW_SHARED = 0x11, PTX_WINDOW_LOCAL = 0x12, PTX_WINDOW_PARAM = 0x13 };

enum ptx_type {
    PTX_NO_TYPE,
    PTX_PRED,
    PTX_B8,
    PTX_B16,
    PTX_B32,
    PTX_B64,
    PTX_U8,
    PTX_U16,
    PTX_U32,
    PTX_U64,
    PTX_S8,
    PTX_S16,
    PTX_S32,
    PTX_S64,
    PTX_F16,
    PTX_BF16,
    PTX_F32,
    PTX_F64,
    PTX_F16X2,
    PTX_BF16X2,
    PTX_TF32,
    PTX_F32X2,
    PTX_TYPES_COUNT
};

enum ptx_space { PTX_GENERIC, PTX_GLOBAL, PTX_SHARED, PTX_PARAM, PTX_LOCAL, PTX_CONST };

/* How the run loop executes an instruction. */
enum ptx_step {
    PTX_STEP_LANES,    /* each lane computes for itself and cannot fail */
    PTX_STEP_ROUNDED,  /* the same with another rounding mode */
    PTX_STEP_MEMORY,   /* may fail */
    PTX_STEP_TOGETHER, /* may fail; waits until all lanes it names have arrived */
    PTX_STEP_BRANCH,
    PTX_STEP_TABLE, /* an indirect branch through a list of targets */
    PTX_STEP_BARRIER,
    PTX_STEP_EXIT
};

/* Rounding modes. The FE_ constants are in fenv.h; here 0 is to nearest. */
enum ptx_rounding { PTX_RN, PTX_RZ, PTX_RM, PTX_RP };

enum ptx_compare {
    PTX_EQ,
    PTX_NE,
    PTX_LT,
    PTX_LE,
    PTX_GT,
    PTX_GE,
    PTX_EQU,
    PTX_NEU,
    PTX_LTU,
    PTX_LEU,
    PTX_GTU,
    PTX_GEU,
    PTX_NUM,
    PTX_NAN
};

enum ptx_bool { PTX_BOOL_NONE, PTX_BOOL_AND, PTX_BOOL_OR, PTX_BOOL_XOR };

enum ptx_atomic {
    PTX_ATOMIC_ADD,
    PTX_ATOMIC_MIN,
    PTX_ATOMIC_MAX,
    PTX_ATOMIC_AND,
    PTX_ATOMIC_OR,
    PTX_ATOMIC_XOR,
    PTX_ATOMIC_EXCH,
    PTX_ATOMIC_CAS,
    PTX_ATOMIC_INC,
    PTX_ATOMIC_DEC
};

enum ptx_shuffle_mode { PTX_SHUFFLE_UP, PTX_SHUFFLE_DOWN, PTX_SHUFFLE_BFLY, PTX_SHUFFLE_IDX };
enum ptx_vote_mode { PTX_VOTE_ALL, PTX_VOTE_ANY, PTX_VOTE_UNI, PTX_VOTE_BALLOT };
enum ptx_barrier_mode { PTX_BARRIER_SYNC, PTX_BARRIER_ARRIVE, PTX_BARRIER_RED };

/* Shape, type of a and b, type of c and d if not fp32. */
enum ptx_mma_kind {
    PTX_MMA_K16_BF16,
    PTX_MMA_K8_BF16,
    PTX_MMA_K16_F16,
    PTX_MMA_K8_F16,
    PTX_MMA_K16_F16_F16,
    PTX_MMA_K8_TF32,
    PTX_MMA_K4_TF32
};

#define PTX_NONE UINT32_MAX

typedef struct ptx_instruction ptx_instruction;
typedef struct ptx_warp ptx_warp;
typedef struct ptx_block ptx_block;
typedef void (*ptx_function)(ptx_warp *warp, const ptx_instruction *in, uint32_t mask);

/* Operands are offsets into the register file, or PTX_NONE. */
struct ptx_instruction {
    ptx_function run;
    uint64_t immediate;  /* offset of an address; target of a branch; number of other operands */
    uint64_t immediate2; /* offset of a second address */
    uint32_t guard, d, e, a, b, c, f;
    uint32_t line;
    uint8_t step, type, type2, space;
    uint8_t vector, bytes; /* elements of an access, and bytes per element */
    uint8_t width;         /* bytes per lane of the register, where it may differ from the type */
    uint8_t address, address2; /* bytes per lane of the address registers */
    uint8_t compare, boolean, rounding, mode;
    bool guard_negated, negated, ftz, sat, strong, trans, aligned;
    bool rounds; /* its text gives a rounding */
};

typedef struct {
    uint32_t offset, bytes;
} ptx_param;

typedef struct {
    uint32_t offset;
    uint16_t special; /* a special register, or 0: a constant */
    uint8_t bytes;    /* per lane; 0: a predicate */
    bool dynamic;     /* within dynamic shared memory */
    uint64_t value;
} ptx_filled;

typedef struct {
    char *name;
    unsigned char *memory, *data; /* the allocation and its aligned part */
    size_t bytes;
    bool constant;
} ptx_variable_data;

struct ptx_kernel {
    const ptx_module *module;
    char *name;
    ptx_param *params;
    uint32_t params_count, params_bytes;
    ptx_instruction *code;
    uint32_t count;
    uint32_t *operands; /* register lists of instructions with many operands */
    uint32_t operands_count;
    ptx_filled *filled;
    uint32_t filled_count;
    uint32_t registers_bytes;
    uint32_t shared_bytes, shared_align;
    uint32_t local_bytes;
    uint32_t threads_max;
    uint32_t granule_shift; /* log2 of the smallest access to shared memory: 1, 2 or 4 bytes */
};

struct ptx_module {
    ptx_kernel **kernels;
    uint32_t kernels_count;
    ptx_variable_data *variables;
    uint32_t variables_count;
    uint32_t version;
    char target[16];
};

/* Special registers, in the order of their table in ptx_parse.c. */
enum ptx_special {
    PTX_SPECIAL_NONE,
    PTX_TID_X,
    PTX_TID_Y,
    PTX_TID_Z,
    PTX_NTID_X,
    PTX_NTID_Y,
    PTX_NTID_Z,
    PTX_CTAID_X,
    PTX_CTAID_Y,
    PTX_CTAID_Z,
    PTX_NCTAID_X,
    PTX_NCTAID_Y,
    PTX_NCTAID_Z,
    PTX_LANEID,
    PTX_WARPID,
    PTX_NWARPID,
    PTX_LANEMASK_EQ,
    PTX_LANEMASK_LT,
    PTX_LANEMASK_LE,
    PTX_LANEMASK_GT,
    PTX_LANEMASK_GE,
    PTX_SMID,
    PTX_NSMID,
    PTX_GRIDID,
    PTX_DYNAMIC_SMEM_SIZE,
    PTX_TOTAL_SMEM_SIZE,
    PTX_CLOCK,
    PTX_CLOCK64,
    PTX_GLOBALTIMER
};

/* ---- a block while it runs ---- */

enum ptx_state {
    PTX_READY,
    PTX_WAITS_LANES,  /* for other lanes of its warp */
    PTX_WAITS_BARRIER /* of the block */
};

/* Lanes of a warp at the same address. */
typedef struct {
    uint32_t pc, mask;
    uint8_t state, barrier;
} ptx_group;

/* A copy in flight to shared memory. */
typedef struct {
    const unsigned char *from;
    uint32_t to, bytes, valid;
    uint32_t lane, group;
} ptx_copy;

struct ptx_warp {
    unsigned char *registers;
    ptx_block *block;
    uint32_t index;
    uint32_t there; /* lanes in the block */
    uint32_t live;  /* lanes that have not ended */
    ptx_group groups[PTX_LANES];
    uint32_t groups_count;
    ptx_copy *copies;
    uint32_t copies_count, copies_capacity;
    uint32_t committed[PTX_LANES]; /* groups of copies */
    unsigned char *local;          /* [lane][local_bytes] */
    /* Stamps up to which the past is ordered before the future: for lanes of this warp, and for
     * warps of the block; see ptx_shared.c. */
    uint32_t lanes_seen;
    uint32_t lane_seen[PTX_LANES][PTX_LANES];
    uint32_t warp_seen[PTX_WARPS_MAX];
};

/* The last write to a granule of shared memory. */
typedef struct {
    uint32_t stamp; /* PTX_FLYING: a copy to it is in flight */
    uint16_t thread;
    bool strong;
} ptx_written;

#define PTX_FLYING UINT32_MAX

/* The last reads of a granule by a warp; stamp is twice the time, + 1 if all of them were
 * strong. */
typedef struct {
    uint32_t stamp, lanes;
} ptx_read;

typedef struct {
    uint32_t expected; /* threads; 0: all threads of the block */
    uint32_t arrived;
    uint32_t seen[PTX_WARPS_MAX];
    uint32_t result[3]; /* of bar.red: popc, and, or */
    bool used;
} ptx_barrier;

struct ptx_block {
    const ptx_kernel *kernel;
    const ptx_launch *launch;
    const ptx_memory *memory;
    ptx_counts *counts;
    char *error;
    bool failed;
    unsigned char *params;
    unsigned char *shared;
    uint32_t shared_bytes;
    ptx_written *written; /* [granule] */
    ptx_read *reads;      /* [warp][granule] */
    uint32_t granules;
    uint32_t now;  /* current stamp */
    uint32_t seen; /* everything up to this stamp is ordered before the future */
    uint32_t index[3];
    uint32_t threads, warps_count;
    ptx_warp *warps;
    ptx_barrier barriers[PTX_BARRIERS];
    uint64_t random;
    uint64_t clock; /* number of reads */
    uint64_t instructions_left;
};

/* Stops the launch with an error; only the first is kept. */
void ptx_stop(ptx_warp *warp, const ptx_instruction *in, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static inline uint64_t
ptx_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static inline uint32_t
ptx_lanes_count(uint32_t mask)
{
    return (uint32_t)__builtin_popcount(mask);
}

static inline uint32_t
ptx_first_lane(uint32_t mask)
{
    return (uint32_t)__builtin_ctz(mask);
}

#define PTX_EACH_LANE(lane, mask)                                                                  \
    for (uint32_t lane##_left = (mask), lane = 0;                                                  \
         lane##_left != 0 && ((lane = ptx_first_lane(lane##_left)), true);                         \
         lane##_left &= lane##_left - 1)

static inline void *
ptx_at(const ptx_warp *warp, uint32_t offset)
{
    return warp->registers + offset;
}

/* Modifiers of forms with an optional rounding, and of those that require one. */
#define PTX_ROUND "?rn|rz|rm|rp "
#define PTX_ROUNDED "rn|rz|rm|rp "

/* A form of an instruction: opcode, modifiers, operands and function. */
typedef struct {
    const char *opcode;
    const char *modifiers; /* words; "?w": optional; "a|b": alternatives */
    const char *operands;  /* widths such as d=ab, of letters p h w d; see ptx_decode.c */
    ptx_function run;
    uint8_t type;
} ptx_form;

/* The forms that lanes compute for themselves; ended by a NULL opcode. The second table is for CPUs
 * with AVX2, FMA and F16C. */
extern const ptx_form ptx_forms_plain[];
extern const ptx_form ptx_forms_avx2[];

/* ptx_memory.c */
void ptx_load(ptx_warp *warp, const ptx_instruction *in, uint32_t mask);
void ptx_store(ptx_warp *warp, const ptx_instruction *in, uint32_t mask);
void ptx_atomic(ptx_warp *warp, const ptx_instruction *in, uint32_t mask);
void ptx_copy_async(ptx_warp *warp, const ptx_instruction *in, uint32_t mask);
void ptx_copy_commit(ptx_warp *warp, const ptx_instruction *in, uint32_t mask);
void ptx_copy_wait(ptx_warp *warp, const ptx_instruction *in, uint32_t mask);
void ptx_load_matrix(ptx_warp *warp, const ptx_instruction *in, uint32_t mask);
void ptx_store_matrix(ptx_warp *warp, const ptx_instruction *in, uint32_t mask);
uint64_t ptx_address(const ptx_warp *warp, uint32_t offset, uint32_t width, uint64_t immediate,
                     uint32_t lane);
/* Whether lanes may end: none of their copies is in flight. */
bool ptx_copies_landed(const ptx_warp *warp, uint32_t mask);

/* ptx_shared.c: data races on shared memory. */
bool ptx_shared_touch(ptx_warp *warp, const ptx_instruction *in, uint32_t lane, uint64_t at,
                      uint32_t bytes, bool write);
/* A copy to shared memory starts; it has arrived. */
void ptx_shared_fly(ptx_warp *warp, uint32_t at, uint32_t bytes);
void ptx_shared_land(ptx_warp *warp, uint32_t at, uint32_t bytes);
/* Access to a matrix row, whose data goes to all lanes. */
bool ptx_shared_touch_row(ptx_warp *warp, const ptx_instruction *in, uint32_t lane, uint64_t at,
                          bool write);
void ptx_sync_lanes(ptx_warp *warp, uint32_t mask);
void ptx_sync_block(ptx_block *block);
/* A warp arrives at a barrier; a warp continues after it. */
void ptx_sync_arrive(ptx_warp *warp, ptx_barrier *barrier);
void ptx_sync_leave(ptx_warp *warp, const ptx_barrier *barrier, uint32_t mask);
bool ptx_in_shared(const ptx_block *block, uint64_t at, uint32_t bytes);
void ptx_count_shared(ptx_warp *warp, const uint32_t at[PTX_LANES], uint32_t mask, uint32_t bytes);
void ptx_count_global(ptx_warp *warp, const uint64_t at[PTX_LANES], uint32_t mask, uint32_t bytes);

/* ptx_warp.c: instructions across lanes. */
void ptx_shuffle(ptx_warp *warp, const ptx_instruction *in, uint32_t mask);
void ptx_vote(ptx_warp *warp, const ptx_instruction *in, uint32_t mask);
void ptx_match(ptx_warp *warp, const ptx_instruction *in, uint32_t mask);
void ptx_redux(ptx_warp *warp, const ptx_instruction *in, uint32_t mask);
void ptx_warp_sync(ptx_warp *warp, const ptx_instruction *in, uint32_t mask);
void ptx_active_mask(ptx_warp *warp, const ptx_instruction *in, uint32_t mask);
void ptx_elect(ptx_warp *warp, const ptx_instruction *in, uint32_t mask);

/* ptx_mma.c, compiled twice like ptx_lanes.c */
void ptx_mma_plain(ptx_warp *warp, const ptx_instruction *in, uint32_t mask);
void ptx_mma_avx2(ptx_warp *warp, const ptx_instruction *in, uint32_t mask);

/* ptx_run.c */
void ptx_nanosleep(ptx_warp *warp, const ptx_instruction *in, uint32_t mask);
void ptx_nothing(ptx_warp *warp, const ptx_instruction *in, uint32_t mask);
void ptx_trap(ptx_warp *warp, const ptx_instruction *in, uint32_t mask);
void ptx_no_body(ptx_warp *warp, const ptx_instruction *in, uint32_t mask);
#define PTX_CLOCK_GLOBAL 1 /* mode of a clock: %globaltimer */
void ptx_clock(ptx_warp *warp, const ptx_instruction *in, uint32_t mask);
/* Converts a generic address to one in a window's space; fails if it is outside. */
void ptx_to_window(ptx_warp *warp, const ptx_instruction *in, uint32_t mask);
