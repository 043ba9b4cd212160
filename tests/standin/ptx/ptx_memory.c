/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads, stores, atomics, copies to shared memory and matrix loads. The accesses of all lanes are
 * checked before any lane's bytes move.
 */
#include "ptx_float.h"
#include "ptx_private.h"

#include <stdlib.h>

uint64_t
ptx_address(const ptx_warp *warp, uint32_t offset, uint32_t width, uint64_t immediate,
            uint32_t lane)
{
    if (offset == PTX_NONE)
        return immediate;
    if (width == 4) /* as the device does, within 32 bits */
        return (uint32_t)(((const uint32_t *)ptx_at(warp, offset))[lane] + (uint32_t)immediate);
    return ((const uint64_t *)ptx_at(warp, offset))[lane] + immediate;
}

/* ---- checks of accesses ---- */

/* Whether the bytes are in a variable of the module that permits the access. */
static bool
in_variable(const ptx_module *module, uint64_t at, uint32_t bytes, bool write)
{
    for (uint32_t i = 0; i < module->variables_count; i++) {
        const ptx_variable_data *variable = &module->variables[i];
        const uint64_t start = (uint64_t)(uintptr_t)variable->data;

        if (at >= start && at - start <= variable->bytes && bytes <= variable->bytes - (at - start))
            return !write || !variable->constant;
    }
    return false;
}

static bool
allowed(const ptx_block *block, uint64_t at, uint32_t bytes, bool write)
{
    if (block->kernel->module->variables_count > 0 &&
        in_variable(block->kernel->module, at, bytes, write))
        return true;
    return block->memory != NULL && block->memory->touch != NULL &&
           block->memory->touch(block->memory->data, (const void *)(uintptr_t)at, bytes, write);
}

/* Checks lanes with contiguous bytes as one access, and one by one if that is rejected. */
static bool
touch_global(ptx_warp *warp, const ptx_instruction *in, const uint64_t at[PTX_LANES], uint32_t mask,
             uint32_t bytes, bool write)
{
    uint32_t left = mask;

    while (left != 0) {
        const uint32_t first = ptx_first_lane(left);
        uint32_t last = first;

        while (last + 1 < PTX_LANES && (left >> (last + 1) & 1) != 0 &&
               at[last + 1] == at[last] + bytes)
            last++;
        if (!allowed(warp->block, at[first], (last - first + 1) * bytes, write))
            for (uint32_t lane = first; lane <= last; lane++)
                if (last == first || !allowed(warp->block, at[lane], bytes, write)) {
                    ptx_stop(warp, in, "lane %u %s %u bytes at 0x%llx, which it must not", lane,
                             write ? "writes" : "reads", bytes, (unsigned long long)at[lane]);
                    return false;
                }
        left &= last == PTX_LANES - 1 ? 0 : ~UINT32_C(0) << (last + 1);
    }
    return true;
}

static bool
aligned(ptx_warp *warp, const ptx_instruction *in, const uint64_t at[PTX_LANES], uint32_t mask,
        uint32_t bytes)
{
    PTX_EACH_LANE(lane, mask)
    {
        if ((at[lane] & (bytes - 1)) != 0) {
            ptx_stop(warp, in, "lane %u: the address 0x%llx is no multiple of %u", lane,
                     (unsigned long long)at[lane], bytes);
            return false;
        }
    }
    return true;
}

/* Two lanes that write different values to one address: the survivor is random. */
static bool
one_writer(ptx_warp *warp, const ptx_instruction *in, unsigned char *const places[PTX_LANES],
           uint32_t mask, uint32_t bytes, unsigned char values[PTX_LANES][32])
{
    uintptr_t before = 0;
    bool rising = true;

    PTX_EACH_LANE(lane, mask)
    {
        rising = rising && (uintptr_t)places[lane] >= before;
        before = (uintptr_t)places[lane] + bytes;
    }
    if (rising)
        return true;
    PTX_EACH_LANE(lane, mask)
    {
        PTX_EACH_LANE(other, mask & ((1u << lane) - 1))
        {
            if (places[other] == places[lane] && memcmp(values[other], values[lane], bytes) != 0) {
                ptx_stop(warp, in, "lanes %u and %u write different values to one address", other,
                         lane);
                return false;
            }
        }
    }
    return true;
}

static enum ptx_space
space_of_generic(uint64_t at)
{
    switch (at >> PTX_WINDOW_SHIFT) {
    case PTX_WINDOW_SHARED:
        return PTX_SHARED;
    case PTX_WINDOW_LOCAL:
        return PTX_LOCAL;
    case PTX_WINDOW_PARAM:
        return PTX_PARAM;
    default:
        return PTX_GLOBAL;
    }
}

static bool
touch_shared(ptx_warp *warp, const ptx_instruction *in, const uint64_t at[PTX_LANES], uint32_t mask,
             uint32_t bytes, bool write)
{
    uint32_t offsets[PTX_LANES] = { 0 };

    PTX_EACH_LANE(lane, mask)
    {
        if (!ptx_shared_touch(warp, in, lane, at[lane], bytes, write))
            return false;
        offsets[lane] = (uint32_t)at[lane];
    }
    ptx_count_shared(warp, offsets, mask, bytes);
    return true;
}

/* Memory private to the thread, or the parameters: only the bound is checked. */
static bool
within(ptx_warp *warp, const ptx_instruction *in, const uint64_t at[PTX_LANES], uint32_t mask,
       uint32_t bytes, bool local)
{
    const ptx_kernel *kernel = warp->block->kernel;
    const uint32_t end = local ? kernel->local_bytes : kernel->params_bytes;

    PTX_EACH_LANE(lane, mask)
    {
        if (at[lane] > end || bytes > end - at[lane]) {
            ptx_stop(warp, in, "lane %u: %u bytes at %llu are beyond %u bytes of %s", lane, bytes,
                     (unsigned long long)at[lane], end, local ? "local memory" : "parameters");
            return false;
        }
    }
    return true;
}

/*
 * Checks the lanes of @mask, all in one space, and returns where their bytes are. @at excludes the
 * window bits of generic addresses.
 */
static bool
reach(ptx_warp *warp, const ptx_instruction *in, enum ptx_space space, uint64_t at[PTX_LANES],
      uint32_t mask, unsigned char *places[PTX_LANES])
{
    const bool write = in->run != ptx_load;
    const ptx_block *block = warp->block;
    const uint32_t bytes = (uint32_t)in->bytes * in->vector;

    if (!aligned(warp, in, at, mask, bytes))
        return false;
    switch (space) {
    case PTX_GLOBAL:
        if (!touch_global(warp, in, at, mask, bytes, write))
            return false;
        ptx_count_global(warp, at, mask, bytes);
        break;
    case PTX_SHARED:
        if (!touch_shared(warp, in, at, mask, bytes, write))
            return false;
        break;
    case PTX_LOCAL:
        if (!within(warp, in, at, mask, bytes, true))
            return false;
        break;
    case PTX_PARAM:
        if (!within(warp, in, at, mask, bytes, false))
            return false;
        if (write) {
            ptx_stop(warp, in, "writes parameters");
            return false;
        }
        break;
    default:
        PTX_EACH_LANE(lane, mask)
        {
            if (!in_variable(block->kernel->module, at[lane], bytes, write)) {
                ptx_stop(warp, in, "lane %u: 0x%llx is in no constant of the module", lane,
                         (unsigned long long)at[lane]);
                return false;
            }
        }
        break;
    }
    PTX_EACH_LANE(lane, mask)
    {
        unsigned char *const bases[] = {
            [PTX_GLOBAL] = NULL,
            [PTX_SHARED] = block->shared,
            [PTX_LOCAL] = warp->local + (size_t)lane * block->kernel->local_bytes,
            [PTX_PARAM] = block->params,
            [PTX_CONST] = NULL,
        };

        places[lane] =
            bases[space] == NULL ? (unsigned char *)(uintptr_t)at[lane] : bases[space] + at[lane];
    }
    return true;
}

/* Like reach() for lanes in different spaces. */
static bool
reach_all(ptx_warp *warp, const ptx_instruction *in, uint32_t mask, uint64_t at[PTX_LANES],
          unsigned char *places[PTX_LANES])
{
    uint32_t left = mask;

    PTX_EACH_LANE(lane, mask)
    {
        at[lane] = ptx_address(warp, in->a, in->address, in->immediate, lane);
    }
    if (in->space != PTX_GENERIC)
        return reach(warp, in, (enum ptx_space)in->space, at, mask, places);
    while (left != 0) {
        const enum ptx_space space = space_of_generic(at[ptx_first_lane(left)]);
        uint32_t same = 0;

        PTX_EACH_LANE(lane, left)
        {
            same |= (uint32_t)(space_of_generic(at[lane]) == space) << lane;
        }
        if (space != PTX_GLOBAL)
            PTX_EACH_LANE(lane, same)
            {
                at[lane] &= (UINT64_C(1) << PTX_WINDOW_SHIFT) - 1;
            }
        if (!reach(warp, in, space, at, same, places))
            return false;
        left &= ~same;
    }
    return true;
}

/* ---- loads and stores ---- */

static uint64_t
widened(const unsigned char *place, const ptx_instruction *in)
{
    uint64_t x = 0;

    memcpy(&x, place, in->bytes);
    switch (in->type) {
    case PTX_S8:
        return (uint64_t)(int64_t)(int8_t)x;
    case PTX_S16:
        return (uint64_t)(int64_t)(int16_t)x;
    case PTX_S32:
        return (uint64_t)(int64_t)(int32_t)x;
    default:
        return x;
    }
}

static void
load_lanes(ptx_warp *warp, const ptx_instruction *in, uint32_t offset,
           unsigned char *const places[PTX_LANES], uint32_t mask, uint32_t skip)
{
    void *d = ptx_at(warp, offset);

    if (in->width == 4 && in->bytes == 4)
        PTX_EACH_LANE(lane, mask)
        {
            memcpy((uint32_t *)d + lane, places[lane] + skip, 4);
        }
    else if (in->width == 8 && in->bytes == 8)
        PTX_EACH_LANE(lane, mask)
        {
            memcpy((uint64_t *)d + lane, places[lane] + skip, 8);
        }
    else
        PTX_EACH_LANE(lane, mask)
        {
            const uint64_t x = widened(places[lane] + skip, in);

            memcpy((unsigned char *)d + (size_t)lane * in->width, &x, in->width);
        }
}

void
ptx_load(ptx_warp *warp, const ptx_instruction *in, uint32_t mask)
{
    const uint32_t *list = warp->block->kernel->operands + in->d;
    unsigned char *places[PTX_LANES];
    uint64_t at[PTX_LANES];

    if (!reach_all(warp, in, mask, at, places))
        return;
    for (uint32_t i = 0; i < in->vector; i++)
        if (list[i] != PTX_NONE)
            load_lanes(warp, in, list[i], places, mask, i * in->bytes);
}

void
ptx_store(ptx_warp *warp, const ptx_instruction *in, uint32_t mask)
{
    const uint32_t *list = warp->block->kernel->operands + in->d;
    const uint32_t bytes = (uint32_t)in->bytes * in->vector;
    unsigned char *places[PTX_LANES], values[PTX_LANES][32];
    uint64_t at[PTX_LANES];

    for (uint32_t i = 0; i < in->vector; i++) {
        const unsigned char *from = ptx_at(warp, list[i]);

        PTX_EACH_LANE(lane, mask)
        {
            memcpy(values[lane] + i * in->bytes, from + (size_t)lane * in->width, in->bytes);
        }
    }
    if (!reach_all(warp, in, mask, at, places))
        return;
    if (!one_writer(warp, in, places, mask, bytes, values))
        return;
    PTX_EACH_LANE(lane, mask)
    {
        memcpy(places[lane], values[lane], bytes);
    }
}

/* ---- atomics ---- */

static double
float_of(uint64_t x, uint8_t type)
{
    switch (type) {
    case PTX_F16:
        return (double)ptx_from_f16((uint16_t)x);
    case PTX_BF16:
        return (double)ptx_from_bf16((uint16_t)x);
    default:
        return ptx_double_of(x);
    }
}

static uint64_t
add_halves(uint64_t x, uint64_t y, uint8_t type)
{
    const ptx_format format = type == PTX_F16 ? PTX_FORMAT_F16 : PTX_FORMAT_BF16;

    return ptx_narrow(ptx_add_odd(float_of(x, type), float_of(y, type)), format, 0);
}

/* f32 atomics flush subnormals in global memory but not in shared memory. */
static uint64_t
add_floats(uint64_t x, uint64_t y, const ptx_instruction *in, bool flush)
{
    float sum, fx, fy;

    switch (in->type) {
    case PTX_F32:
        fx = ptx_float_of((uint32_t)x);
        fy = ptx_float_of((uint32_t)y);
        sum = flush ? ptx_flush(ptx_flush(fx) + ptx_flush(fy)) : fx + fy;
        return sum == sum ? ptx_bits_of(sum) : PTX_NAN_F32;
    case PTX_F64:
        return ptx_bits_of_double(ptx_double_of(x) + ptx_double_of(y));
    case PTX_F16:
    case PTX_BF16:
        return add_halves(x, y, in->type);
    default: {
        const uint8_t type = in->type == PTX_F16X2 ? PTX_F16 : PTX_BF16;

        return add_halves(x & 0xffff, y & 0xffff, type) |
               add_halves(x >> 16 & 0xffff, y >> 16 & 0xffff, type) << 16;
    }
    }
}

static bool
is_less(uint64_t x, uint64_t y, uint8_t type)
{
    if (type == PTX_S32)
        return (int32_t)x < (int32_t)y;
    if (type == PTX_S64)
        return (int64_t)x < (int64_t)y;
    return x < y;
}

/* The new value for the old value @old. */
static uint64_t
atomic_result(const ptx_instruction *in, uint64_t old, uint64_t b, uint64_t c, bool flush)
{
    switch (in->mode) {
    case PTX_ATOMIC_ADD:
        return in->type >= PTX_F16 ? add_floats(old, b, in, flush) : old + b;
    case PTX_ATOMIC_MIN:
        return is_less(b, old, in->type) ? b : old;
    case PTX_ATOMIC_MAX:
        return is_less(old, b, in->type) ? b : old;
    case PTX_ATOMIC_AND:
        return old & b;
    case PTX_ATOMIC_OR:
        return old | b;
    case PTX_ATOMIC_XOR:
        return old ^ b;
    case PTX_ATOMIC_EXCH:
        return b;
    case PTX_ATOMIC_CAS:
        return old == b ? c : old;
    case PTX_ATOMIC_INC:
        return old >= b ? 0 : old + 1;
    default:
        return old == 0 || old > b ? b : old - 1;
    }
}

static uint64_t
lane_value(const ptx_warp *warp, uint32_t offset, uint32_t width, uint32_t lane)
{
    uint64_t x = 0;

    if (offset != PTX_NONE)
        memcpy(&x, (const unsigned char *)ptx_at(warp, offset) + (size_t)lane * width, width);
    return x;
}

/* Lanes execute in a random order. */
static uint32_t
drawn_order(ptx_warp *warp, uint32_t mask, uint32_t order[PTX_LANES])
{
    uint32_t count = 0;

    PTX_EACH_LANE(lane, mask)
    {
        const uint32_t i = (uint32_t)(ptx_random(&warp->block->random) >> 32) % (count + 1);

        order[count] = order[i];
        order[i] = lane;
        count++;
    }
    return count;
}

void
ptx_atomic(ptx_warp *warp, const ptx_instruction *in, uint32_t mask)
{
    unsigned char *places[PTX_LANES];
    uint64_t at[PTX_LANES];
    uint32_t order[PTX_LANES] = { 0 }, count;

    if (!reach_all(warp, in, mask, at, places))
        return;
    count = drawn_order(warp, mask, order);
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t lane = order[i];
        const bool flush = in->space == PTX_GLOBAL ||
                           (in->space == PTX_GENERIC && at[lane] >> PTX_WINDOW_SHIFT == 0 &&
                            (uint64_t)(uintptr_t)places[lane] == at[lane]);
        const uint64_t b = lane_value(warp, in->c, in->width, lane);
        const uint64_t c = lane_value(warp, in->f, in->width, lane);
        uint64_t old = 0, after;

        memcpy(&old, places[lane], in->bytes);
        after = atomic_result(in, old, b, c, flush);
        memcpy(places[lane], &after, in->bytes);
        if (in->d != PTX_NONE)
            memcpy((unsigned char *)ptx_at(warp, in->d) + (size_t)lane * in->width, &old,
                   in->width);
    }
}

/* ---- copies to shared memory ---- */

static void
copy_new(ptx_warp *warp, const ptx_copy *copy)
{
    if (warp->copies_count == warp->copies_capacity) {
        warp->copies_capacity = warp->copies_capacity == 0 ? 64 : 2 * warp->copies_capacity;
        warp->copies = realloc(warp->copies, warp->copies_capacity * sizeof(*warp->copies));
        if (warp->copies == NULL)
            abort();
    }
    warp->copies[warp->copies_count++] = *copy;
}

/* Number of source bytes read; the rest is zeros. */
static uint32_t
valid_bytes(const ptx_warp *warp, const ptx_instruction *in, uint32_t lane)
{
    if (in->f != PTX_NONE) {
        const uint32_t ignored = *(const uint32_t *)ptx_at(warp, in->f);

        return ((in->negated ? ~ignored : ignored) >> lane & 1) != 0 ? 0 : in->bytes;
    }
    if (in->c != PTX_NONE)
        return ((const uint32_t *)ptx_at(warp, in->c))[lane];
    return in->bytes;
}

void
ptx_copy_async(ptx_warp *warp, const ptx_instruction *in, uint32_t mask)
{
    uint64_t to[PTX_LANES] = { 0 }, from[PTX_LANES] = { 0 };
    uint32_t valid[PTX_LANES] = { 0 }, offsets[PTX_LANES] = { 0 }, read = 0;

    PTX_EACH_LANE(lane, mask)
    {
        to[lane] = ptx_address(warp, in->a, in->address, in->immediate, lane);
        from[lane] = ptx_address(warp, in->b, in->address2, in->immediate2, lane);
        valid[lane] = valid_bytes(warp, in, lane);
        if (valid[lane] > in->bytes) {
            ptx_stop(warp, in, "lane %u copies %u bytes of %u", lane, valid[lane], in->bytes);
            return;
        }
        read |= (uint32_t)(valid[lane] == in->bytes) << lane;
    }
    if (!aligned(warp, in, to, mask, in->bytes) || !aligned(warp, in, from, mask, in->bytes) ||
        !touch_global(warp, in, from, read, in->bytes, false))
        return;
    PTX_EACH_LANE(lane, mask)
    {
        const ptx_copy copy = { (const unsigned char *)(uintptr_t)from[lane],
                                (uint32_t)to[lane],
                                in->bytes,
                                valid[lane],
                                lane,
                                warp->committed[lane] };

        if (valid[lane] > 0 && valid[lane] < in->bytes &&
            !touch_global(warp, in, from, 1u << lane, valid[lane], false))
            return;
        if (!ptx_shared_touch(warp, in, lane, to[lane], in->bytes, true))
            return;
        ptx_shared_fly(warp, copy.to, copy.bytes);
        copy_new(warp, &copy);
        offsets[lane] = copy.to;
    }
    ptx_count_shared(warp, offsets, mask, in->bytes);
    if (read != 0)
        ptx_count_global(warp, from, read, in->bytes);
}

void
ptx_copy_commit(ptx_warp *warp, const ptx_instruction *in, uint32_t mask)
{
    (void)in;
    PTX_EACH_LANE(lane, mask)
    {
        warp->committed[lane]++;
    }
}

static bool
land(ptx_warp *warp, const ptx_instruction *in, const ptx_copy *copy)
{
    unsigned char *to = warp->block->shared + copy->to;

    ptx_shared_land(warp, copy->to, copy->bytes);
    if (!ptx_shared_touch(warp, in, copy->lane, copy->to, copy->bytes, true))
        return false;
    if (copy->valid > 0)
        memcpy(to, copy->from, copy->valid);
    memset(to + copy->valid, 0, copy->bytes - copy->valid);
    return true;
}

/* The bytes arrive only now: no earlier moment is guaranteed. */
void
ptx_copy_wait(ptx_warp *warp, const ptx_instruction *in, uint32_t mask)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < warp->copies_count; i++) {
        const ptx_copy copy = warp->copies[i];
        const bool waits =
            (mask >> copy.lane & 1) != 0 &&
            (in->mode != 0 || (uint64_t)copy.group + in->immediate < warp->committed[copy.lane]);

        if (!waits)
            warp->copies[kept++] = copy;
        else if (!land(warp, in, &copy))
            return;
    }
    warp->copies_count = kept;
}

bool
ptx_copies_landed(const ptx_warp *warp, uint32_t mask)
{
    for (uint32_t i = 0; i < warp->copies_count; i++)
        if ((mask >> warp->copies[i].lane & 1) != 0)
            return false;
    return true;
}

/* ---- matrices of 8 x 8 halves ---- */

/* Addresses of the rows: lanes 0 to 7 give those of the first matrix, and so on. */
static bool
matrix_rows(ptx_warp *warp, const ptx_instruction *in, bool write, uint32_t rows[PTX_LANES])
{
    const uint32_t lanes = 8u * in->vector;
    const uint32_t mask = lanes == PTX_LANES ? PTX_ALL_LANES : (1u << lanes) - 1;
    uint64_t at[PTX_LANES];

    PTX_EACH_LANE(lane, mask)
    {
        at[lane] = ptx_address(warp, in->a, in->address, in->immediate, lane);
        rows[lane] = (uint32_t)at[lane];
    }
    if (!aligned(warp, in, at, mask, 16))
        return false;
    PTX_EACH_LANE(lane, mask)
    {
        if (!ptx_shared_touch_row(warp, in, lane, at[lane], write))
            return false;
    }
    ptx_count_shared(warp, rows, mask, 16);
    return true;
}

/* Row and column of a lane's element: two neighbours in a row, or in a column if transposed. */
static uint32_t
element_at(const ptx_instruction *in, uint32_t lane, uint32_t i, uint32_t *column)
{
    *column = in->trans ? lane / 4 : lane % 4 * 2 + i;
    return in->trans ? lane % 4 * 2 + i : lane / 4;
}

void
ptx_load_matrix(ptx_warp *warp, const ptx_instruction *in, uint32_t mask)
{
    const uint32_t *list = warp->block->kernel->operands + in->d;
    uint32_t rows[PTX_LANES];

    (void)mask;
    if (!matrix_rows(warp, in, false, rows))
        return;
    for (uint32_t matrix = 0; matrix < in->vector; matrix++)
        for (uint32_t lane = 0; lane < PTX_LANES && list[matrix] != PTX_NONE; lane++) {
            uint16_t pair[2];

            for (uint32_t i = 0; i < 2; i++) {
                uint32_t column;
                const uint32_t row = element_at(in, lane, i, &column);

                memcpy(&pair[i], warp->block->shared + rows[8 * matrix + row] + 2 * column, 2);
            }
            ((uint32_t *)ptx_at(warp, list[matrix]))[lane] = pair[0] | (uint32_t)pair[1] << 16;
        }
}

void
ptx_store_matrix(ptx_warp *warp, const ptx_instruction *in, uint32_t mask)
{
    const uint32_t *list = warp->block->kernel->operands + in->d;
    uint32_t rows[PTX_LANES] = { 0 };

    (void)mask;
    if (!matrix_rows(warp, in, true, rows))
        return;
    for (uint32_t matrix = 0; matrix < in->vector; matrix++)
        for (uint32_t lane = 0; lane < PTX_LANES; lane++) {
            const uint32_t value = ((const uint32_t *)ptx_at(warp, list[matrix]))[lane];

            for (uint32_t i = 0; i < 2; i++) {
                const uint16_t half = (uint16_t)(value >> 16 * i);
                uint32_t column = 0;
                const uint32_t row = element_at(in, lane, i, &column);

                memcpy(warp->block->shared + rows[8 * matrix + row] + 2 * column, &half, 2);
            }
        }
}
